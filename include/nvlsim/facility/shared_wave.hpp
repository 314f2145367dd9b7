// Power of several loads that repeat with periods of their own. [docs/facility.md#shared]
#pragma once

#include <cstddef>
#include <vector>

#include "nvlsim/facility/waveform.hpp"

namespace nvlsim {

/// `factor` times a wave that begins its period `shift` before the window does.
struct shifted_wave {
  power_wave wave;
  double factor = 1;
  seconds shift;
};

/// The sum of the waves and `base` over `window`, as equal pieces, each the mean of its time. Waves without a
/// period count nothing.
power_wave superposed(const std::vector<shifted_wave>& waves, watts base, seconds window, std::size_t pieces);

}  // namespace nvlsim
