// Explaining a scenario: its run, what the run rests on, and what its constants do to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Pointer and value of what no file said.
std::vector<value::member> defaults_of(const scenario& s);

/// Takes a metric of a run that has facts apart, with band, constants, defaults and assumptions; the main one when
/// `metric` is empty. Throws input_error when the result lacks it.
explanation explain_run(const scenario& s, const run_record& run, const std::string& metric);

/// Runs the scenario in this process and takes a metric apart; the main one when `metric` is empty. Throws
/// input_error when the scenario lacks the metric. A scenario that cannot run gives an explanation without a
/// value; `status` then is infeasible.
explanation explain_scenario(const scenario& s, const std::string& metric, run_status& status);

/// The scenario with further overrides; throws input_error when they are refused.
using changed_scenario = std::function<scenario(const std::vector<override_option>&)>;

/// Fills `sensitivities` and `turning_points` of an explanation: runs the scenario with each of its constants a
/// tenth less and a tenth more, and the most telling ones between a quarter and four times. `report` gets runs
/// done and in all.
void add_sensitivity(explanation& e, const changed_scenario& change,
                     const std::function<void(std::size_t, std::size_t)>& report);

}  // namespace nvlsim
