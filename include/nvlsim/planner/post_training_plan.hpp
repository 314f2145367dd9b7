// How GPUs are divided between rollouts and training, with which layouts, and what more of them bring.
// [docs/planning.md]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/analysis/search_result.hpp"
#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

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

struct post_training_question {
  plan_base base;                    ///< a post-training scenario; its split and layouts are not used
  std::int64_t gpus = 0;             ///< at least 2
  std::int64_t more = 0;             ///< GPUs that may be added; 0: not asked
  std::vector<std::string> stale{};  ///< bounds of staleness that may be used; empty: 0, 1 and 2
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

/// Finds layouts of trainer and engines for half of the GPUs each and for all in turns, then the split and the
/// staleness, then the trainer's layout again. Ranked by the step's time; of those
/// within 1 %, the least stale. What staleness costs in learning is not modelled. Throws input_error.
post_training_plan plan_post_training(const post_training_question& q, const plan_watch& watch = {});

}  // namespace nvlsim
