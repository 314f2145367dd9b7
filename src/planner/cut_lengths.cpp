#include "planner/cut_lengths.hpp"

#include <algorithm>
#include <cmath>

#include "nvlsim/post_training/response_lengths.hpp"

namespace nvlsim {
namespace {

constexpr double largest_variation = 100;  // that a scenario may have
constexpr int halvings = 60;               // of an interval, down to the precision of a double

/// Log-normal lengths before the cut, and its bounds.
struct uncut {
  double median = 0, deviation = 0;  ///< deviation: of the logarithm
  double min = 1, max = 1;

  double mean() const { return median * std::exp(deviation * deviation / 2); }
  double variation() const { return std::sqrt(std::expm1(deviation * deviation)); }
  /// Mean of the power of lengths after the cut, 1 or 2: a power of them is log-normal, too.
  double moment(int power) const {
    const double m = std::pow(median, power), low = std::pow(min, power), high = std::pow(max, power);
    const double s = power * deviation;
    return mean_after_cut(m, s, high) + low - mean_after_cut(m, s, low);
  }
  bool allowed() const { return mean() >= min && mean() <= max && variation() <= largest_variation; }
};

/// The one of this deviation of the logarithm whose mean after the cut is `mean`.
uncut with_mean(uncut l, double mean) {
  // A median that far beyond a bound leaves next to nothing on the other side of it.
  const double far = 10 * l.deviation + 1;
  double low = std::log(l.min) - far, high = std::log(l.max) + far;
  for (int i = 0; i < halvings; ++i) {
    l.median = std::exp((low + high) / 2);
    (l.moment(1) < mean ? low : high) = (low + high) / 2;
  }
  return l;
}

}  // namespace

double sampled_mean(const token_lengths& l) {
  if (l.shape != length_shape::lognormal) return l.mean;
  const double variance = std::log1p(l.variation * l.variation);
  return uncut{l.mean * std::exp(-variance / 2), std::sqrt(variance), static_cast<double>(l.min),
               static_cast<double>(l.max)}
      .moment(1);
}

token_lengths cut_lognormal(double mean, double deviation, std::int64_t min, std::int64_t max) {
  uncut found{mean, 0, static_cast<double>(min), static_cast<double>(max)};
  double low = 0, high = std::sqrt(std::log1p(largest_variation * largest_variation));
  for (int i = 0; i < halvings; ++i) {
    uncut l = found;
    l.deviation = (low + high) / 2;
    l = with_mean(l, mean);
    if (const double s2 = l.moment(2) - mean * mean; l.allowed() && s2 <= deviation * deviation) {
      found = l;
      low = l.deviation;
    } else {
      high = l.deviation;
    }
  }
  token_lengths out;
  out.shape = length_shape::lognormal;
  out.mean = std::clamp(found.mean(), found.min, found.max);
  out.variation = found.variation();
  out.min = min;
  out.max = max;
  return out;
}

}  // namespace nvlsim
