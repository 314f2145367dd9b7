// How GPUs are divided between rollouts and training, with which layouts, and what more of them bring.
// [docs/planning.md]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/plan_answers.hpp"
#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

struct post_training_question {
  plan_base base;                    ///< a post-training scenario; its split and layouts are not used
  std::int64_t gpus = 0;             ///< at least 2
  std::int64_t more = 0;             ///< GPUs that may be added; 0: not asked
  std::vector<std::string> stale{};  ///< bounds of staleness that may be used; empty: 0, 1 and 2
};

/// Finds layouts of trainer and engines for half of the GPUs each and for all in turns, then the split and the
/// staleness, then the trainer's layout again. Ranked by the step's time; of those
/// within 1 %, the least stale. What staleness costs in learning is not modelled. Throws input_error.
post_training_plan plan_post_training(const post_training_question& q, const plan_watch& watch = {});

}  // namespace nvlsim
