// Formats a comparison for terminals, scripts, pull requests, test reports and GitHub's log.
#pragma once

#include <span>
#include <string>

#include "nvlsim/analysis/compare.hpp"

namespace nvlsim::output {

enum class compare_format { table, json, markdown, junit, github };
/// "table", "json", "markdown", "junit", "github", in enumerator order.
std::span<const std::string> compare_format_names();

std::string render(const analysis::comparison& c, compare_format format);

/// The first `most` changed inputs of a compared scenario: "/workload/tp 2 -> 4; and 3 more". Empty if none
/// changed.
std::string changed_inputs_text(const analysis::comparison& c, const std::string& scenario, std::size_t max);
/// One change, as "2 -> 4".
std::string change_text(const analysis::input_change& i);

std::string compare_table(const analysis::comparison& c);
std::string compare_json(const analysis::comparison& c);
std::string compare_markdown(const analysis::comparison& c);
/// The verdict, remarks, gates (failed ones first), then what changed; unchanged scenarios are folded.
/// JUnit XML with one test case per rule and scenario. Without rules, one passing test case per metric.
std::string compare_junit(const analysis::comparison& c);
/// GitHub workflow commands: `::error` for a failed rule, with the changed inputs, and for a scenario that cannot
/// run;
/// `::warning` for a scenario without a counterpart and for remarks; `::notice` for the number of rules that
/// passed and for inputs that changed. Ten of each kind at most, as many as the host shows; the tenth counts the
/// rest.
std::string compare_github(const analysis::comparison& c);

}  // namespace nvlsim::output
