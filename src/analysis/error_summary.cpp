#include "nvlsim/analysis/error_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nvlsim/serving/summary.hpp"
#include "nvlsim/units/statistics.hpp"

namespace nvlsim {

error_summary summary_of(const std::vector<double>& errors) {
  error_summary out;
  if (errors.empty()) return out;
  std::vector<double> magnitudes;
  for (const double e : errors) {
    magnitudes.push_back(std::abs(e));
    out.mean += std::abs(e);
    out.bias += e;
  }
  const auto n = static_cast<double>(errors.size());
  out.rows = errors.size();
  out.mean /= n;
  out.bias /= n;
  out.median = median_of(magnitudes);
  out.p90 = share_below(magnitudes, 0.9);
  out.worst = *std::max_element(magnitudes.begin(), magnitudes.end());
  return out;
}

expected_rows expected_in_band(std::size_t rows) {
  constexpr double share = 0.9, tail = 0.025;
  const auto n = static_cast<double>(rows);
  expected_rows out{rows, rows};
  double below = 0;  // probability of `k` rows or fewer
  for (std::size_t k = 0; k <= rows; ++k) {
    const auto x = static_cast<double>(k);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(share) +
                      (n - x) * std::log(1 - share));
    if (below >= tail) out.low = std::min(out.low, k);
    if (below >= 1 - tail) {
      out.high = k;
      break;
    }
  }
  return out;
}

}  // namespace nvlsim
