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

/// A deployment at the highest load that it holds. `outcome` is what `run` gives for `text`.
struct planned_server {
  bool pooled = false;  ///< prefill and decode on workers of their own
  rank_counts workers;  ///< that decode, or do both
  rank_counts prefill;  ///< where `pooled`
  std::int64_t gpus = 0;
  std::int64_t max_num_tokens = 0, prefill_tokens = 0;  ///< as tried; 0: the engine's own
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

struct serving_plan {
  std::string model, platform, stack;
  std::int64_t gpus = 0;  ///< asked for, or found
  service_objective objective;
  std::optional<planned_server> aggregated, pooled;
  std::vector<serving_point> points;            ///< fastest for a user first
  std::vector<lost_server> lost;                ///< best first
  std::map<std::string, std::int64_t> refused;  ///< layouts that cannot run, by reason
  std::vector<std::string> notes;               ///< what was not tried, and what was assumed
  std::int64_t runs = 0;                        ///< simulated loads
  bool interrupted = false;
  double wall_s = 0;

  /// The deployment that answers the question; null if none does. With a demand, the one of fewer GPUs.
  const planned_server* best() const;
  bool for_demand = false;  ///< `gpus` was found
};

/// Rates workers of every shape alone, combines them, runs the best combinations until the load is found that they
/// hold, and moves GPUs between the pools while that helps. Throws input_error with every problem of the base.
serving_plan plan_serving(const serving_question& q, const plan_watch& watch = {});

/// "2 x tp 8 ep 8", with the prefill workers before those that decode.
std::string layout_text(const rank_counts& workers);
std::string layout_text(const planned_server& s);

}  // namespace nvlsim
