// Lengths of sequences in tokens, as distributions.
#pragma once

#include <cstdint>

namespace nvlsim {

enum class length_shape {
  uniform,     ///< in [mean (1 - spread), mean (1 + spread)]
  lognormal,   ///< of that mean and coefficient of variation
  exponential  ///< of that mean
};

/// Lengths of prompts or outputs, rounded, within [min, max].
struct token_lengths {
  double mean = 0;
  double spread = 0;  ///< of uniform lengths
  length_shape shape = length_shape::uniform;
  double variation = 0;  ///< coefficient of variation of lognormal lengths
  std::int64_t min = 1, max = std::int64_t{1} << 30;
  friend bool operator==(const token_lengths&, const token_lengths&) = default;
};

}  // namespace nvlsim
