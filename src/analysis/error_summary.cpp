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

}  // namespace nvlsim
