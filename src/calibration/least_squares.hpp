// Small robust least squares with bounds and priors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nvlsim {

/// A free parameter. It moves on a logarithmic scale when `logarithmic`, and a prior of that width holds it near
/// its start: finely split fits look better and predict worse.
struct free_parameter {
  std::string name;
  double start = 1, low = 0, high = 1;
  double prior_width = 1;  ///< standard deviation, of log(value / start) when logarithmic
  bool logarithmic = false;
  std::optional<double> search_from = {};  ///< where the search begins; at `start` if absent
};

struct fit_options {
  double robust_scale = 0.08;  ///< residuals beyond it count less than squared (soft L1)
  int iterations = 25;
  double tolerance = 1e-4;  ///< relative decrease of the cost that ends the search
};

/// Signed residuals at a point, weights included. Same length at every point.
using residual_function = std::function<std::vector<double>(const std::vector<double>&)>;
/// Derivatives of the residuals, a row each, by the parameters on the scales they move on (logarithms where so).
using jacobian_function = std::function<std::vector<std::vector<double>>(const std::vector<double>&)>;

/// Levenberg-Marquardt, steps cut at the bounds; derivatives are numerical where none are given. Returns the best
/// point found.
std::vector<double> fit_parameters(const std::vector<free_parameter>& parameters,
                                   const residual_function& residuals, const fit_options& options = {},
                                   const std::function<void(int, double)>& report = {},
                                   const jacobian_function& derivatives = {});

}  // namespace nvlsim
