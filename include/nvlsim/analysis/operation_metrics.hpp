// What a cluster did over days to months.
#pragma once

#include <cstdint>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct operation_metrics {
  seconds duration;
  std::int64_t gpus = 0;  ///< of the platform
};

}  // namespace nvlsim
