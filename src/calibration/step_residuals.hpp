// Errors of a training fit on steps it did not use.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// A published step and the error of a fit that has not seen it.
struct unseen_step {
  std::string group;  ///< of the steps that were left out with it
  step_residuals kind;
  double miss = 0;        ///< log(published / simulated time)
  std::string cell = {};  ///< model, size of NVLink domain and bits of the operands
};

/// The 5 % and 95 % quantiles for each kind of step present in `steps`, rack-scale domains first. Few steps of a
/// kind are shrunk towards those of `pool`.
std::vector<step_residuals> residuals_by_kind(const std::vector<unseen_step>& steps,
                                              const std::vector<unseen_step>& pool);
/// The quantiles as stored in a stack file.
value residuals_value(const std::vector<step_residuals>& residuals);
/// Fraction of steps inside the bands that the other groups of `steps`, and of `pool`, give them. Requires at
/// least one step.
double coverage_of(const std::vector<unseen_step>& steps, const std::vector<unseen_step>& pool);
/// The same for each cell with ten steps or more, in order of names.
struct cell_coverage {
  std::string cell;
  std::size_t rows = 0, inside = 0;
};
std::vector<cell_coverage> coverage_by_cell(const std::vector<unseen_step>& steps,
                                            const std::vector<unseen_step>& pool);

}  // namespace nvlsim
