// Finds the highest load that a server sustains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// The highest load at which a server meets its objective and is not saturated.
struct highest_load {
  bool found = false;           ///< whether any tried load is sustained
  double load = 0;              ///< requests/s (open loop, trace) or clients (closed loop)
  inference_workload workload;  ///< the workload at `load`
  bool bounded = true;          ///< slightly more load is not sustained; false: every tried load is
  bool short_run = false;  ///< the limit is the length of the run: slightly more load meets the objective, but
                           ///< completions lag behind arrivals
  bool stopped = false;    ///< before the end: `load` is only the highest that was found to be sustained
  double in_flight = 0;    ///< mean requests in flight at `load`
  int runs = 0;
  int cut = 0;         ///< of these, ended early: too many requests had missed a limit
  std::string missed;  ///< if none is sustained: latencies at the lowest tried load, with the limits
  double counted = 0;  ///< counted requests: those outside warm-up and tail
  /// The number of counted requests needed for a stable answer. With fewer, not even one request may miss the
  /// objective and the result depends on the seed.
  double enough() const {
    return std::max(100.0,
                    workload.objective.largest_share() < 1 ? 1 / (1 - workload.objective.largest_share()) : 0);
  }
  bool few() const { return counted < enough(); }
};

/// The highest load that the search tries, in the unit of `highest_load::load`: that of the scenario format, and
/// by MLPerf's rules, where a run is of ten minutes, that of which as many requests arrive as a run may have.
double highest_load_tried(const inference_workload& w);

/// Doubles or halves the load of `s` until one load is sustained and one is not, then bisects to 0.2 % or one
/// client. Assumes that less load is never worse. Throws input_error if the workload has another kind of load or
/// no objective, or if the scenario cannot run. `report` gets the number of runs before each; how many there will
/// be is unknown, 0. `stop` is asked at each request that ends; once true, the search gives what it has.
highest_load find_highest_load(const scenario& s,
                               const std::function<void(std::int64_t runs, std::int64_t all)>& report = {},
                               const std::function<bool()>& stop = {});

}  // namespace nvlsim
