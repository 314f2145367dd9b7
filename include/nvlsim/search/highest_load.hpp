// How much load a server holds.
#pragma once

#include <algorithm>
#include <string>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// The highest load at which a server keeps its objective and is not saturated.
struct highest_load {
  bool found = false;       ///< whether any load tried holds
  double load = 0;          ///< requests a second (open loop, trace) or clients (closed loop)
  inference_workload work;  ///< with that load
  bool bounded = true;      ///< a little more does not hold; else no load tried breaks the objective
  bool short_run = false;   ///< a little more keeps the objective too, but requests end more slowly than they come
  int runs = 0;
  std::string missed;  ///< where none holds: latencies at the least load tried, beside the limits
  double counted = 0;  ///< requests that decide: those of the run without warm-up and tail
  /// Requests of which one may miss the objective; with fewer another seed gives another load.
  double enough() const { return std::max(100.0, work.objective.share < 1 ? 1 / (1 - work.objective.share) : 0); }
  bool few() const { return counted < enough(); }
};

/// Doubles or halves the load of `s` until one holds and one does not, then halves the gap between them to 0.2 %,
/// or one client. Assumes that less load is never worse. Throws input_error when the load is of another kind,
/// there is no objective, or the scenario cannot run.
highest_load find_highest_load(const scenario& s);

}  // namespace nvlsim
