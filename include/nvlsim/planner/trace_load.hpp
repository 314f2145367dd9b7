// What a plan takes from a trace of requests.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

/// Overrides of a scenario with a trace. A plan plays a load of its own in the place of the trace.
struct trace_sets {
  std::vector<override_option> of_trace;  ///< what is not of the load, and members that a trace has
  std::vector<override_option> of_load;   ///< members of the load in its place
};

/// Splits overrides by when they are applied: those of the trace before its lengths are taken, those of the load
/// after it is replaced. A number of requests is of the trace: a plan plays as many as it needs.
trace_sets split_sets(const std::vector<override_option>& sets);

/// The base with an open loop in the place of its trace: prompts and answers are log-normal, and what is drawn has
/// the mean and deviation of the requests that a run would replay, between the shortest and the longest; images,
/// warm-up and tail stay. Where log-normal lengths within the bounds do not spread as much, the mean is kept.
/// `assumed` gets what that leaves out. A base with another load stays as it is. Throws input_error if the trace
/// cannot be read.
plan_base with_lengths_of_trace(plan_base base, std::vector<std::string>& assumed);

/// The base with the trace of a file, relative to the working folder, as its load; then the overrides. A trace
/// without times of arrival gets a rate. Throws input_error of all that is wrong with the scenario.
plan_base with_trace(const plan_base& base, const std::string& file, const std::vector<override_option>& sets);

/// The load of a trace in a file, relative to the working folder.
value trace_load(const std::string& file, bool has_times);

}  // namespace nvlsim
