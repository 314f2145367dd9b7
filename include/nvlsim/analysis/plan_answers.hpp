// What plans answer: deployments, training runs, post-training loops, scaling, the next dollar. [docs/planning.md]
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/analysis/search_result.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// What the engine lets a worker (a rank of attention data parallelism) do at once; its own where nobody says.
struct worker_limits {
  std::int64_t max_batch_size = 0;  ///< running sequences
  std::int64_t max_num_tokens = 0;  ///< of an iteration
};

/// A deployment at the highest load that it holds. `outcome` is what `run` gives for `text`. A demand that is too
/// large for one router gets equal copies side by side, each with its own share of the requests: `workers`,
/// `prefill`, `text` and `outcome` are of one copy, `gpus`, `requests_per_s` and `users` of all.
struct planned_server {
  bool pooled = false;  ///< prefill and decode on workers of their own
  rank_counts workers;  ///< that decode, or do both
  rank_counts prefill;  ///< where `pooled`
  std::int64_t copies = 1;
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

/// "2 x tp 8 ep 8", with the prefill workers before those that decode.
std::string layout_text(const rank_counts& workers);
/// "tp 8 ep 8", the shape of one worker.
std::string shape_text(const rank_counts& worker);
/// The same of a deployment; "12 times (2 x tp 8 ep 8)" where it has copies.
std::string layout_text(const planned_server& s);

/// How one engine is started: lines of a shell, `#` lines say where each runs.
struct launch_commands {
  std::string engine;
  std::vector<std::string> lines;
};

/// A training step on GPUs. `outcome` is what `run` gives for `text`.
struct planned_training {
  std::int64_t gpus = 0, racks = 0, gpus_per_rack = 0;
  std::int64_t global_batch_size = 0;
  std::string layout;  ///< "tp 2 pp 8 vp 4 dp 32"
  double step_time_s = 0, tokens_per_s = 0, mfu = 0, bubble = 0, exposed_s = 0;
  std::optional<double> days;     ///< with a token budget, of productive time and what failures cost
  std::optional<double> goodput;  ///< productive share of the time; absent: all of it
  std::optional<double>
      cost_usd;  ///< of the run, for all of the days; the outcome's is that of the steps it keeps
  value text;
  result outcome;
};

struct lost_training {
  std::string layout, why;
};

/// A layout that needs the least memory of a GPU, where none fits.
struct closest_training {
  std::int64_t gpus = 0;
  std::string layout;
  double needed_bytes = 0, usable_bytes = 0;  ///< of each GPU
};

struct training_plan {
  std::string model, platform, stack;
  double tokens = 0, days = 0, goodput = 1;
  std::string failures;
  std::optional<planned_training> best;     ///< that qualifies
  std::optional<planned_training> nearest;  ///< the fastest, where none qualifies
  std::optional<closest_training> closest;  ///< where no layout of any number of GPUs runs, for memory
  std::vector<planned_training> sizes;      ///< all numbers of GPUs that were tried, fewest first
  std::vector<lost_training> lost;
  std::vector<pruned_layouts> pruned;
  std::int64_t evaluated = 0, candidates = 0;
  bool interrupted = false;
  double wall_s = 0;
};

struct scaling_point {
  std::string platform;
  std::int64_t gpus = 0;
  std::optional<planned_training> best;
  double efficiency = 0;  ///< tokens/s/GPU over those of the platform's first size
  std::string why;        ///< what grew most since then, or why nothing runs
};

struct scaling_plan {
  std::string scenario;
  bool weak = false;
  std::vector<scaling_point> points;  ///< by platform, then size
  bool interrupted = false;
  double wall_s = 0;
  std::int64_t evaluated = 0;
};

/// A loop on GPUs. `outcome` is what `run` gives for `text`.
struct planned_loop {
  bool split = false;                             ///< pools of their own; else both take turns on all GPUs
  std::int64_t rollout_gpus = 0, train_gpus = 0;  ///< equal where they take turns
  double staleness = 0;
  std::string layout;  ///< "rollout 8 x tp 4; training tp 2 pp 4 dp 8"
  double step_time_s = 0, tokens_per_s = 0, rollout_idle = 0, training_idle = 0;
  value text;
  result outcome;
};

/// What more GPUs bring, in one place.
struct added_gpus {
  std::string where;  ///< "rollouts", "training"
  std::optional<planned_loop> loop;
  std::string why;  ///< why it does not run
};

struct post_training_plan {
  std::string model, platform, rollout_stack, training_stack, framework;
  std::int64_t gpus = 0, more = 0;
  std::optional<planned_loop> best;
  std::vector<planned_loop> others;  ///< the best of each split and staleness, and in turns; fastest first
  std::vector<added_gpus> added;
  std::vector<pruned_layouts> pruned;
  std::int64_t evaluated = 0, candidates = 0;
  bool interrupted = false;
  double wall_s = 0;
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

}  // namespace nvlsim
