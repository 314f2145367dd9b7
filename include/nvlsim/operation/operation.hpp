// A cluster over days to months: failures, recovery and policies. Jobs and the times of their steps are passed in.
#pragma once

#include <cstdint>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// The policies of a cluster, and for how long it runs.
struct operation_workload {
  seconds duration;        ///< wall time that is simulated
  std::int64_t seeds = 1;  ///< runs with failures of their own

  bool operator==(const operation_workload&) const = default;
};

}  // namespace nvlsim
