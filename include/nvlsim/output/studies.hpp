// Searches, Pareto studies, validations, fits, kernels and the table of metrics as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/fit_report.hpp"
#include "nvlsim/analysis/kernel_answer.hpp"
#include "nvlsim/analysis/pareto_study.hpp"
#include "nvlsim/analysis/search_result.hpp"
#include "nvlsim/analysis/validation.hpp"
#include "nvlsim/config/value.hpp"

namespace nvlsim {

/// Pointers and values, as `--set` takes them, that make a layout of the scenario that was searched.
std::vector<std::pair<std::string, std::string>> settings_of(const search_result& r, const found_layout& l);
/// `command` runs the best layout, with line breaks between its words where they may be; empty: left out.
value search_json(const search_result& r, const std::string& command = {});
std::string search_csv(const search_result& r);
/// Text for a terminal of 80 columns; lines are longer if layouts have many parameters.
std::string search_text(const search_result& r, const std::string& command = {});

/// Text for a terminal. Points on the Pareto front are marked.
std::string pareto_table(const pareto_study& p);
std::string pareto_json(const pareto_study& p);
/// A plot of tokens/s per GPU over tokens/s per user, one line per layout.
std::string pareto_svg(const pareto_study& p);

/// `{"rows": [...], "summary": {...}}` over all tables together, with `by` groups and the same per table.
value validation_json(const std::vector<validation_record>& records);
/// Text for a terminal of 80 columns: the worst rows and the summary.
std::string validation_text(const std::vector<validation_record>& records, bool all_rows);

/// Text for a terminal: parameters before and after the fit, errors on fitted and on left-out rows.
std::string fit_text(const fit_report& f);

value kernel_json(const kernel_answer& a);
std::string kernel_text(const kernel_answer& a);

/// Every metric with its unit and meaning, for a terminal of 80 columns.
std::string metrics_text();
value metrics_json();
/// The tables of docs/result-format.md.
std::string metrics_markdown();

}  // namespace nvlsim
