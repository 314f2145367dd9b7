#include "calibration/least_squares.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>

namespace nvlsim {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

double to_free(const free_parameter& p, double value) {
  return p.logarithmic ? std::log(value / p.start) : value - p.start;
}
double from_free(const free_parameter& p, double x) {
  return std::clamp(p.logarithmic ? p.start * std::exp(x) : p.start + x, p.low, p.high);
}

/// Soft L1 loss: quadratic near zero, linear far away.
double robust(double e, double scale) {
  const double z = e / scale;
  return std::copysign(std::sqrt(2 * (std::sqrt(1 + z * z) - 1)), e);
}

double robust_slope(double e, double scale) {
  const double z = e / scale, root = std::sqrt(1 + z * z);
  constexpr double small = 1e-6;
  return std::abs(z) < small ? 1 / scale : std::abs(z) / root / std::sqrt(2 * (root - 1)) / scale;
}

class problem_in_free_space {
 public:
  problem_in_free_space(const std::vector<free_parameter>& p, const residual_function& f, const fit_options& o,
                        const jacobian_function& d)
      : parameters_(p), residuals_(f), options_(o), derivatives_(d) {}

  std::vector<double> values(const VectorXd& x) const {
    std::vector<double> v;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      v.push_back(from_free(parameters_[i], x[static_cast<Eigen::Index>(i)]));
    return v;
  }
  VectorXd residuals(const VectorXd& x) const {
    const std::vector<double> r = residuals_(values(x));
    const auto n = static_cast<Eigen::Index>(r.size()), k = static_cast<Eigen::Index>(parameters_.size());
    VectorXd out(n + k);
    for (Eigen::Index i = 0; i < n; ++i) out[i] = robust(r[static_cast<std::size_t>(i)], options_.robust_scale);
    for (Eigen::Index i = 0; i < k; ++i) out[n + i] = x[i] / parameters_[static_cast<std::size_t>(i)].prior_width;
    return out;
  }
  MatrixXd jacobian(const VectorXd& x, const VectorXd& at_x) const {
    if (derivatives_) return given_jacobian(x, at_x);
    MatrixXd j(at_x.size(), x.size());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      const free_parameter& p = parameters_[static_cast<std::size_t>(i)];
      double h = 2e-3 * (p.logarithmic ? 1.0 : std::max(std::abs(p.start), (p.high - p.low) * 0.05));
      VectorXd y = x;
      y[i] += h;
      if (from_free(p, y[i]) >= p.high) y[i] = x[i] - h, h = -h;
      j.col(i) = (residuals(y) - at_x) / h;
    }
    return j;
  }
  MatrixXd given_jacobian(const VectorXd& x, const VectorXd& at_x) const {
    MatrixXd j = MatrixXd::Zero(at_x.size(), x.size());
    const std::vector<double> v = values(x), r = residuals_(v);
    const std::vector<std::vector<double>> d = derivatives_(v);
    const auto n = static_cast<Eigen::Index>(r.size());
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const double slope = robust_slope(r[row], options_.robust_scale);
      for (Eigen::Index k = 0; k < x.size(); ++k) j(i, k) = slope * d[row][static_cast<std::size_t>(k)];
    }
    for (Eigen::Index k = 0; k < x.size(); ++k)
      j(n + k, k) = 1 / parameters_[static_cast<std::size_t>(k)].prior_width;
    return j;
  }
  VectorXd inside(VectorXd x) const {
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      const free_parameter& p = parameters_[static_cast<std::size_t>(i)];
      x[i] = to_free(p, from_free(p, x[i]));
    }
    return x;
  }

 private:
  const std::vector<free_parameter>& parameters_;
  const residual_function& residuals_;
  const fit_options& options_;
  const jacobian_function& derivatives_;
};

}  // namespace

std::vector<double> fit_parameters(const std::vector<free_parameter>& parameters,
                                   const residual_function& residuals, const fit_options& options,
                                   const std::function<void(int, double)>& report,
                                   const jacobian_function& derivatives) {
  const problem_in_free_space f(parameters, residuals, options, derivatives);
  VectorXd x = VectorXd::Zero(static_cast<Eigen::Index>(parameters.size()));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].search_from)
      x[static_cast<Eigen::Index>(i)] = to_free(parameters[i], *parameters[i].search_from);
  x = f.inside(x);
  VectorXd r = f.residuals(x);
  double damping = 1e-2;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    if (report) report(iteration, r.squaredNorm() / 2);
    const MatrixXd j = f.jacobian(x, r);
    const MatrixXd normal = j.transpose() * j;
    const VectorXd gradient = j.transpose() * r;
    const double before = r.squaredNorm();
    bool better = false;
    for (int attempt = 0; attempt < 8 && !better; ++attempt) {
      MatrixXd damped = normal;
      damped.diagonal() += damping * normal.diagonal().cwiseMax(1e-12);
      const VectorXd y = f.inside(x - damped.ldlt().solve(gradient));
      const VectorXd s = f.residuals(y);
      if (s.squaredNorm() < before) {
        x = y;
        r = s;
        damping = std::max(damping / 4, 1e-8);
        better = true;
      } else {
        damping *= 5;
      }
    }
    if (!better || before - r.squaredNorm() < options.tolerance * before) break;
  }
  if (report) report(options.iterations, r.squaredNorm() / 2);
  return f.values(x);
}

}  // namespace nvlsim
