// Explains a scenario: its run, the inputs the run depends on, and its sensitivity to constants.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Pointers and values of the settings that no file gives.
std::vector<value::member> defaults_of(const scenario& s);

/// Explains a metric of a finished run, with band, constants, defaults and assumptions. An empty `metric` selects
/// the main one. The run needs facts (`run_options::explained`). Throws input_error if the result has no such
/// metric.
explanation explain_run(const scenario& s, const run_record& run, const std::string& metric);

/// Runs the scenario in this process and explains a metric. An empty `metric` selects the main one. Throws
/// input_error if the scenario has no such metric. If the scenario cannot run, sets `status` to infeasible and
/// returns an explanation without a value.
explanation explain_scenario(const scenario& s, const std::string& metric, run_status& status);

/// Returns the scenario with further overrides. Throws input_error if they are invalid.
using changed_scenario = std::function<scenario(const std::vector<override_option>&)>;

/// Fills `sensitivities` and `turning_points`. Runs the scenario with each of its constants at 0.9 and 1.1 times
/// the value; varies the most influential ones between 0.25 and 4 times. Calls `report(done, all)` with numbers of
/// runs.
void add_sensitivity(explanation& e, const changed_scenario& change,
                     const std::function<void(std::size_t, std::size_t)>& report);

}  // namespace nvlsim
