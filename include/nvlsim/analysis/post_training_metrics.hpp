// What a loop of rollouts and updates did.
#pragma once

#include <cstdint>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct post_training_metrics {
  seconds step_time;  ///< mean over the steps
  std::int64_t gpus = 0;
};

}  // namespace nvlsim
