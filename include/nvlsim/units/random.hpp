// Random distributions with the same results on every standard library.
#pragma once

#include <cmath>
#include <numbers>
#include <random>

namespace nvlsim {

/// Uniform in [0, 1).
inline double uniform(std::mt19937_64& g) { return static_cast<double>(g() >> 11) * 0x1p-53; }

/// Exponential with mean 1.
inline double exponential(std::mt19937_64& g) { return -std::log1p(-uniform(g)); }

/// Standard normal (Box and Muller).
inline double normal(std::mt19937_64& g) {
  const double radius = std::sqrt(2 * exponential(g));
  return radius * std::cos(2 * std::numbers::pi * uniform(g));
}

/// Weibull with the given shape and mean 1; shape 1 is `exponential`, to the last digit.
inline double weibull(std::mt19937_64& g, double shape) {
  const double e = exponential(g);
  return shape == 1 ? e : std::pow(e, 1 / shape) / std::tgamma(1 + 1 / shape);
}

}  // namespace nvlsim
