#include "study/fit_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "workload/serving_summary.hpp"

namespace nvlsim {

double share_below(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
}

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

void enter_fitted(fit_report& out, const error_summary& e) {
  out.rows = e.rows;
  out.mean_error = e.mean;
  out.median_error = e.median;
  out.p90_error = e.p90;
  out.bias = e.bias;
}

fit_report::left_out left_out_of(std::string group, const error_summary& e) {
  return {std::move(group), e.rows, e.mean, e.worst, e.bias, e.median, e.p90};
}

std::string third_of(const std::string& id) {
  std::uint64_t h = 14695981039346656037u;  // FNV-1a, whose low bits are poor
  for (const char c : id) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("third {}", 1 + (h >> 16) % 3);
}

}  // namespace nvlsim
