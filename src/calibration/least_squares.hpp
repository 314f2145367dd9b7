// Robust least squares with bounds and priors, for small problems.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nvlsim {

/// A free parameter, on a logarithmic scale if `logarithmic`. A prior holds it near its start: without priors,
/// fits with many parameters look better and predict worse.
struct free_parameter {
  std::string name;
  double start = 1, low = 0, high = 1;
  double prior_width = 1;  ///< standard deviation, of log(value / start) when logarithmic
  bool logarithmic = false;
  std::optional<double> search_from = {};  ///< start of the search; `start` if absent
};

struct fit_options {
  double robust_scale = 0.08;  ///< larger residuals count less than quadratically (soft L1)
  int iterations = 25;
  double tolerance = 1e-4;  ///< relative decrease of the cost that ends the search
};

/// Returns the signed, weighted residuals at a point. The length must be the same at every point.
using residual_function = std::function<std::vector<double>(const std::vector<double>&)>;
/// Returns the derivatives of the residuals, one row per residual, on each parameter's own scale (its logarithm if
/// `logarithmic`).
using jacobian_function = std::function<std::vector<std::vector<double>>(const std::vector<double>&)>;

/// Minimizes by Levenberg-Marquardt with steps clipped at the bounds. Uses numerical derivatives if none are
/// given. Returns the best point found.
std::vector<double> fit_parameters(const std::vector<free_parameter>& parameters,
                                   const residual_function& residuals, const fit_options& options = {},
                                   const std::function<void(int, double)>& report = {},
                                   const jacobian_function& derivatives = {});

}  // namespace nvlsim
