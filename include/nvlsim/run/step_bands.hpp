// How far off the step time of a training scenario may be.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// What the errors of a fit are multiplied by, in log, on GPUs that nobody measured [assumed].
inline constexpr double unmeasured_widening = 2;

/// `unmeasured_widening` where nobody measured a GEMM of this GPU at this precision, else one.
/// [docs/explain.md#bands]
double error_beyond_fit(const scenario& s);

/// The stack's band of steps of this kind, widened by `error_beyond_fit` in log. Requires a training scenario.
step_band step_band_of(const scenario& s);

}  // namespace nvlsim
