// A comparison as text: for terminals, scripts, pull requests, test reports and GitHub's log.
#pragma once

#include <span>
#include <string>

#include "nvlsim/analysis/compare.hpp"

namespace nvlsim::output {

enum class compare_format { table, json, markdown, junit, github };
/// "table", "json", "markdown", "junit", "github", in the order of the enumerators.
std::span<const std::string> compare_format_names();

std::string render(const analysis::comparison& c, compare_format format);

/// The inputs of a compared scenario that differ, the first `most` of them: "/workload/tp 2 -> 4; and 3 more".
/// Empty when none does.
std::string changed_inputs_text(const analysis::comparison& c, const std::string& scenario, std::size_t most);
/// One of them, as "2 -> 4".
std::string change_text(const analysis::input_change& i);

std::string compare_table(const analysis::comparison& c);
std::string compare_json(const analysis::comparison& c);
std::string compare_markdown(const analysis::comparison& c);
/// A test case for each rule and scenario; without rules one for each metric, which then cannot fail.
std::string compare_junit(const analysis::comparison& c);
/// `::error` for a failed rule, with the inputs that differ, `::notice` for one that held, `::warning` for
/// scenarios without a counterpart.
std::string compare_github(const analysis::comparison& c);

}  // namespace nvlsim::output
