// Summary statistics of simulation errors.
#pragma once

#include <cstddef>
#include <vector>

namespace nvlsim {

/// Statistics of signed relative errors. All zero when there are no errors.
struct error_summary {
  std::size_t rows = 0;
  double mean = 0, median = 0, p90 = 0, worst = 0, bias = 0;
};
error_summary summary_of(const std::vector<double>& errors);

/// Fewest and most of `rows` independent rows that are inside their 90 % bands, with 95 % probability: the 2.5 and
/// 97.5 % quantiles of the binomial distribution.
struct expected_rows {
  std::size_t low = 0, high = 0;
  bool hold(std::size_t inside) const { return low <= inside && inside <= high; }
};
expected_rows expected_in_band(std::size_t rows);
/// Cells with fewer rows say nothing about their bands.
inline constexpr std::size_t fewest_rows_of_cell = 10;

}  // namespace nvlsim
