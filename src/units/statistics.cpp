#include "nvlsim/units/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace nvlsim {

double median_of(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 == 1 ? *middle : (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double share_below(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
}

double normal_below(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

double normal_quantile(double u) {
  double low = -40, high = 40;
  for (int i = 0; i < 60; ++i) {
    const double z = (low + high) / 2;
    (normal_below(z) < u ? low : high) = z;
  }
  return (low + high) / 2;
}

double largest_normal(double n) { return normal_quantile((n - 0.375) / (n + 0.25)); }

}  // namespace nvlsim
