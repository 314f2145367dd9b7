// Which part of the hardware gains most when it gets better. [docs/planning.md]
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

struct next_dollar_question {
  plan_base base;
  double step = 0.1;                    ///< relative improvement of each part
  std::string metric;                   ///< empty: the main one of the workload
  std::map<std::string, double> costs;  ///< of that improvement by knob name, USD a GPU; those not given have none
};

/// A part of the hardware, improved.
struct hardware_knob {
  std::string name;                   ///< "hbm_bandwidth"
  std::vector<std::string> pointers;  ///< below /platform, changed together
  std::string from, to;               ///< of the first
  std::optional<double> gain;         ///< relative improvement of the metric; nothing if it cannot run
  std::optional<double> cost_usd;     ///< of the improvement, a GPU
  std::string why;                    ///< why there is no gain, where it is known
};

struct next_dollar_plan {
  std::string scenario, metric;
  bool smaller_is_better = true;
  double value = 0;  ///< of the metric as it is
  double step = 0.1;
  std::vector<hardware_knob> knobs;  ///< largest gain first; with costs, largest gain a dollar first
  bool interrupted = false;
  double wall_s = 0;
};

/// Improves each part of the platform by the same share, and runs the scenario. A server under an open loop with
/// limits is judged by the load that it holds. Throws input_error.
next_dollar_plan plan_next_dollar(const next_dollar_question& q, const plan_watch& watch = {});

/// Names of all knobs.
std::vector<std::string> knob_names();

}  // namespace nvlsim
