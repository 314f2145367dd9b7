// How far off the step time of a training scenario may be, and what a fit says of it.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/scenario.hpp"
#include "nvlsim/value.hpp"

namespace nvlsim {

/// What the errors of a fit are multiplied by, in log, on GPUs that nobody measured [assumed].
inline constexpr double unmeasured_widening = 2;

/// `unmeasured_widening` where nobody measured a GEMM of this GPU at this precision, else one.
/// [docs/explain.md#bands]
double error_beyond_fit(const scenario& s);

/// The stack's band of steps of this kind, widened by `error_beyond_fit` in log. Requires a training scenario.
step_band step_band_of(const scenario& s);

/// A published step that a fit without its system did not know.
struct unseen_step {
  std::string system;
  step_residuals kind;
  double miss = 0;  ///< logarithm of published over simulated time
};

/// The 5 % and 95 % quantiles of each kind of step that there is, rack-scale domains first.
std::vector<step_residuals> residuals_by_kind(const std::vector<unseen_step>& steps);
/// As a stack file states them.
value residuals_value(const std::vector<step_residuals>& residuals);
/// Share of the steps of each system that lie in the bands of a system nobody measured: quantiles of all other systems,
/// widened. Requires a step.
double coverage_of(const std::vector<unseen_step>& steps);

}  // namespace nvlsim
