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

}  // namespace nvlsim
