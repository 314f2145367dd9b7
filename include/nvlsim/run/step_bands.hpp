// Error band of the training step time.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Multiplies the log errors of a fit on GPUs without measurements [assumed].
inline constexpr double unmeasured_widening = 2;

/// `unmeasured_widening` if no GEMM was measured on this GPU at this precision, else 1.
/// [docs/explain.md#bands]
double error_beyond_fit(const scenario& s);

/// The stack's band for steps of this kind; its log width is multiplied by `error_beyond_fit`. Requires a training
/// scenario.
step_band step_band_of(const scenario& s);

}  // namespace nvlsim
