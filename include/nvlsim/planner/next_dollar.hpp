// Which part of the hardware gains most when it gets better. [docs/planning.md]
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/plan_answers.hpp"
#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

struct next_dollar_question {
  plan_base base;
  double step = 0.1;                    ///< relative improvement of each part
  std::string metric;                   ///< empty: the main one of the workload
  std::map<std::string, double> costs;  ///< of that improvement by knob name, USD a GPU; those not given have none
};

/// Improves each part of the platform by the same share, and runs the scenario. A server under an open loop with
/// limits is judged by the load that it holds. Throws input_error.
next_dollar_plan plan_next_dollar(const next_dollar_question& q, const plan_watch& watch = {});

/// Names of all knobs.
std::vector<std::string> knob_names();

}  // namespace nvlsim
