// How many users a deployment serves within its limits, and which deployment serves the most. [docs/planning.md]
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/planner/plan_question.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// A model on a platform, with lengths and limits (`slo`). The layout and the load of the base are not used.
struct serving_question {
  plan_base base;
  std::int64_t gpus = 0;      ///< 0: as many as the demand needs; without a demand, one NVLink domain
  double users = 0;           ///< requests in flight that must be held; 0: none asked for
  double requests_per_s = 0;  ///< that must be held; 0: none asked for
};

/// What the engine lets a worker (a rank of attention data parallelism) do at once; its own where nobody says.
struct worker_limits {
  std::int64_t max_batch_size = 0;  ///< running sequences
  std::int64_t max_num_tokens = 0;  ///< of an iteration
};

/// A deployment at the highest load that it holds. `outcome` is what `run` gives for `text`.
struct planned_server {
  bool pooled = false;  ///< prefill and decode on workers of their own
  rank_counts workers;  ///< that decode, or do both
  rank_counts prefill;  ///< where `pooled`
  std::int64_t gpus = 0;
  std::int64_t max_num_tokens = 0, prefill_tokens = 0;  ///< as tried; 0: the engine's own
  worker_limits limits, prefill_limits;                 ///< of `workers` and `prefill`, as they run
  double requests_per_s = 0, users = 0;                 ///< users: mean requests in flight
  std::string limit;                                    ///< why the load is not surely the highest; else empty
  value text;                                           ///< the scenario
  result outcome;
};

/// A point of tokens/s/GPU over tokens/s/user.
struct serving_point {
  bool pooled = false;
  std::string layout;
  double per_user = 0, per_gpu = 0;
  double ttft_s = 0;       ///< mean; 0: not known
  bool efficient = false;  ///< no other point is better in one rate and no worse in the other
};

/// A deployment that was not chosen.
struct lost_server {
  std::string layout;
  double requests_per_s = 0;  ///< 0: it holds no load, or was not run
  std::string why;
};

/// A deployment that may not answer the question.
struct other_server {
  std::string layout;
  std::int64_t gpus = 0;
  double requests_per_s = 0;
  double users = 0;  ///< mean requests in flight; 0: not known
};

struct serving_plan {
  std::string model, platform, stack;
  std::int64_t gpus = 0;  ///< asked for, or found
  service_objective objective;
  std::optional<planned_server> aggregated, pooled;
  std::vector<serving_point> points;                        ///< fastest for a user first
  std::vector<lost_server> lost;                            ///< best first
  std::map<std::string, std::vector<std::string>> refused;  ///< shapes of workers that cannot run, by reason
  double users_asked = 0, requests_per_s_asked = 0;         ///< the demand; 0: none
  std::optional<other_server> max_held;                     ///< of all that were run; where none meets the demand
  std::optional<other_server>
      by_rates;                    ///< what the rates of workers alone promise; nothing before they are known
  std::vector<std::string> notes;  ///< what was not tried, and what was assumed
  std::int64_t runs = 0;           ///< simulated loads
  bool interrupted = false;
  double wall_s = 0;

  /// The deployment that answers the question; null if none does. With a demand, the one of fewer GPUs.
  const planned_server* best() const;
  bool for_demand = false;  ///< `gpus` was found
  bool has_demand() const { return users_asked > 0 || requests_per_s_asked > 0; }
  /// Whether there is a deployment, and it holds the demand.
  bool enough() const;
  /// GPUs for the demand: found, or at the best deployment's load a GPU, or by the rates; nothing if unknown.
  std::optional<std::int64_t> gpus_needed() const;
};

/// Rates workers of every shape alone, combines them, runs the best combinations until the load is found that they
/// hold, and moves GPUs between the pools while that helps. Throws input_error with every problem of the base.
serving_plan plan_serving(const serving_question& q, const plan_watch& watch = {});

/// "2 x tp 8 ep 8", with the prefill workers before those that decode.
std::string layout_text(const rank_counts& workers);
/// "tp 8 ep 8", the shape of one worker.
std::string shape_text(const rank_counts& worker);
std::string layout_text(const planned_server& s);

}  // namespace nvlsim
