// Reinforcement learning on one cluster: a loop of rollouts and updates. Times of phases are passed in.
#pragma once

#include <cstdint>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// The loop of a post-training run.
struct post_training_workload {
  std::int64_t steps = 1;  ///< steps that are simulated

  bool operator==(const post_training_workload&) const = default;
};

}  // namespace nvlsim
