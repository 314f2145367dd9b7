// What a plan takes from a trace of requests.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

/// The base with an open loop in the place of its trace: prompts and answers are log-normal with the trace's means
/// and deviations, between its shortest and longest. `assumed` gets what that leaves out. A base with another load
/// stays as it is. Throws input_error if the trace cannot be read.
plan_base with_lengths_of_trace(plan_base base, std::vector<std::string>& assumed);

/// The load of a trace in a file, relative to the working folder.
value trace_load(const std::string& file, bool has_times);

}  // namespace nvlsim
