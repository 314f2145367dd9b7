// What a training fit says of steps that it did not see.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

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
/// Share of the steps of each system that lie in the bands of a system nobody measured: quantiles of all other
/// systems, widened. Requires a step.
double coverage_of(const std::vector<unseen_step>& steps);

}  // namespace nvlsim
