// The soft roofline of all kernel formulas. [docs/models-and-assumptions.md#kernels]
#pragma once

#include <cmath>

#include "nvlsim/compute/compute.hpp"

namespace nvlsim::compute {

inline double cube(double x) { return x * x * x; }

/// A smooth maximum: up to 26 % above the larger value, when both are equal. Models two resources that overlap
/// imperfectly.
inline double smooth_max(double a, double b) { return std::cbrt(cube(a) + cube(b)); }

/// Share of L2 up to which the operands or the cache of a benchmark are still in L2 at its next launch.
constexpr double resident_share = 0.75;  // [docs/models-and-assumptions.md#decode-attention]

/// Rounds of SMs for `items_per_sm` equal items. The empty part of the last round costs `rounding` of its time.
inline double rounds(double items_per_sm, double rounding) {
  if (items_per_sm <= 1) return 1;
  return items_per_sm + rounding * (std::ceil(items_per_sm - 1e-9) - items_per_sm);
}

/// What limits a kernel: the launch if it takes at least half of the time, else the longer of the other two.
inline kernel_resource limit_of(double launch, double compute, double memory, double total) {
  if (launch >= total - launch) return kernel_resource::launch;
  return compute >= memory ? kernel_resource::compute : kernel_resource::memory;
}

}  // namespace nvlsim::compute
