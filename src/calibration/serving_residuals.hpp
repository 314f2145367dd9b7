// What a serving fit says of its errors, as stack files keep it.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/units/precision.hpp"

namespace nvlsim {

/// Share of the errors that a band holds, and what those of a fit are multiplied by: rows outside it miss by more.
inline constexpr double band_share = 0.9, unseen_widening = 1.25;

/// Of one published value: the logarithm of simulated over published.
struct served_error {
  std::string engine, kind, gpu, metric;  ///< kind as of `error_kind`; metric "tpot", "ttft" or "throughput"
  precision format = precision::bf16;
  double log_error = 0;
};

/// `"calibration"` of an engine's stack: GPUs and formats measured, and widths of 90 % by kind, wider than the
/// errors of the fit because rows outside it miss by more. A kind with few values has none.
value calibration_of(const std::vector<served_error>& fitted, const std::string& engine);

/// `"elsewhere"`: the widths on systems that were left out of the fit in turn, over all engines.
value widths_elsewhere(const std::vector<served_error>& left_out);
/// Share of the values of left-out systems inside bands that come from the other left-out systems alone.
double coverage_elsewhere(const std::vector<served_error>& left_out);

}  // namespace nvlsim
