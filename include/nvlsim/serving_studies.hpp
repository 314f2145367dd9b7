// Questions about a server that take many runs: how much load it holds, what layouts trade.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nvlsim/inference_metrics.hpp"
#include "nvlsim/scenario.hpp"

namespace nvlsim {

/// The highest load at which a server keeps its objective and is not saturated.
struct highest_load {
  bool found = false;      ///< whether any load tried holds
  double load = 0;         ///< requests a second (open loop, trace) or clients (closed loop)
  inference_workload work; ///< with that load
  bool bounded = true;     ///< a little more does not hold; else no load tried breaks the objective
  bool short_run = false;  ///< a little more keeps the objective too, but requests end more slowly than they come
  int runs = 0;
  std::string missed;      ///< where none holds: latencies at the least load tried, beside the limits
  double counted = 0;      ///< requests that decide: those of the run without warm-up and tail
  /// Requests of which one may miss the objective; with fewer another seed gives another load.
  double enough() const { return std::max(100.0, work.objective.share < 1 ? 1 / (1 - work.objective.share) : 0); }
  bool few() const { return counted < enough(); }
};

/// Doubles or halves the load of `s` until one holds and one does not, then halves the gap between them to 0.2 %, or one
/// client. Assumes that less load is never worse. Throws input_error when the load is of another kind, there is no
/// objective, or the scenario cannot run.
highest_load find_highest_load(const scenario& s);

/// A layout under a number of clients.
struct pareto_point {
  std::string layout;  ///< "tp 4 ep 4"
  int tp = 1, pp = 1, ep = 1, attention_dp = 1, replicas = 1;
  std::int64_t concurrency = 0;
  inference_metrics metrics;
  bool efficient = false;  ///< no other point has more of one rate and no less of the other
};

struct pareto_study {
  std::string name;
  std::int64_t gpus = 0;
  std::vector<pareto_point> points;  ///< by tokens a second and user, fastest first
  std::vector<std::string> left_out; ///< layouts that cannot run, with the reason
};

/// Closed loops of each number of clients on each layout of `gpus` GPUs (0: as many as the scenario's layout has): tensor
/// parallel sizes that are powers of two, with experts spread over them or not, and attention data parallelism with
/// experts over all ranks.
pareto_study study_pareto(scenario s, std::int64_t gpus, const std::vector<std::int64_t>& clients,
                          const std::function<void(std::size_t, std::size_t)>& report = {});

/// For a terminal; the efficient points are marked.
std::string pareto_table(const pareto_study& p);
std::string pareto_json(const pareto_study& p);
/// A picture: tokens a second and GPU over tokens a second and user, a line a layout.
std::string pareto_svg(const pareto_study& p);

}  // namespace nvlsim
