// GPU memory use over time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/result.hpp"

namespace nvlsim {

struct memory_curve {
  std::string name;                               ///< "stage 1"
  std::vector<std::pair<double, double>> points;  ///< seconds, bytes; constant until the next point
};

/// Training: one curve for the fullest stage. It is the constant part plus activations, which grow with completed
/// forward work and shrink with completed backward work. Inference: one curve per replica class, the constant part
/// plus the tokens in the KV cache. Each curve has at most `max` points.
/// [docs/models-and-assumptions.md#memory-over-time]
std::vector<memory_curve> memory_over_time(const run_record& run, std::size_t max);

}  // namespace nvlsim
