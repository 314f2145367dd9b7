// The soft roofline of all kernel formulas. [docs/models-and-assumptions.md#kernels]
#pragma once

#include <cmath>

#include "nvlsim/compute.hpp"

namespace nvlsim::compute {

inline double cube(double x) { return x * x * x; }

/// Above both, by at most 26 % where they are equal: two resources that overlap imperfectly.
inline double smooth_max(double a, double b) { return std::cbrt(cube(a) + cube(b)); }

/// What a kernel waits for most: the launch when it takes at least as long as all the rest.
inline bound limit_of(double launch, double compute, double memory, double total) {
  if (launch >= total - launch) return bound::launch;
  return compute >= memory ? bound::compute : bound::memory;
}

}  // namespace nvlsim::compute
