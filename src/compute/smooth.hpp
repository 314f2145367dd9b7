// The soft roofline of all kernel formulas. [docs/models-and-assumptions.md#kernels]
#pragma once

#include <cmath>

#include "nvlsim/compute/compute.hpp"

namespace nvlsim::compute {

inline double cube(double x) { return x * x * x; }

/// Above both, by at most 26 % where they are equal: two resources that overlap imperfectly.
inline double smooth_max(double a, double b) { return std::cbrt(cube(a) + cube(b)); }

/// Of L2, what operands or a cache may take that are found there again at the next launch of a benchmark.
constexpr double resident_share = 0.75;  // [docs/models-and-assumptions.md#decode-attention]

/// Rounds of SMs that `items_per_sm` equal items take, when a partly filled round costs `rounding` of what is
/// missing to a full one.
inline double rounds(double items_per_sm, double rounding) {
  if (items_per_sm <= 1) return 1;
  return items_per_sm + rounding * (std::ceil(items_per_sm - 1e-9) - items_per_sm);
}

/// What a kernel waits for most: the launch when it takes at least as long as all the rest.
inline bound limit_of(double launch, double compute, double memory, double total) {
  if (launch >= total - launch) return bound::launch;
  return compute >= memory ? bound::compute : bound::memory;
}

}  // namespace nvlsim::compute
