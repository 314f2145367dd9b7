// Errors of a simulation in figures.
#pragma once

#include <cstddef>
#include <vector>

namespace nvlsim {

/// Of signed relative errors; all zero when there are none.
struct error_summary {
  std::size_t rows = 0;
  double mean = 0, median = 0, p90 = 0, worst = 0, bias = 0;
};
error_summary summary_of(const std::vector<double>& errors);

}  // namespace nvlsim
