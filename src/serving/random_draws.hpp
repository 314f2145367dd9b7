// Random draws of requests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "nvlsim/serving/requests.hpp"
#include "nvlsim/units/random.hpp"

namespace nvlsim {

/// Gamma with the given shape and mean 1 (Marsaglia and Tsang, 2000).
inline double gamma(std::mt19937_64& g, double shape) {
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(g), t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    if (std::log(1 - uniform(g)) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    const double boost = shape < 1 ? std::pow(1 - uniform(g), 1 / shape) : 1;
    return d * v * boost / shape;
  }
}

inline std::int64_t draw(std::mt19937_64& g, const token_lengths& l) {
  double length = l.mean;
  if (l.shape == length_shape::uniform) {
    length *= 1 + l.spread * (2 * uniform(g) - 1);
  } else if (l.shape == length_shape::exponential) {
    length *= exponential(g);
  } else {
    const double variance = std::log1p(l.variation * l.variation);
    length *= std::exp(std::sqrt(variance) * normal(g) - variance / 2);
  }
  return std::llround(std::clamp(length, static_cast<double>(l.min), static_cast<double>(l.max)));
}

}  // namespace nvlsim
