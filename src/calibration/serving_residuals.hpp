// Errors of a serving fit, as stored in stack files.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/units/precision.hpp"

namespace nvlsim {

/// `band_share`: fraction of errors inside a band. `unseen_widening`: multiplies the widths of fitted rows,
/// because rows outside the fit have larger errors.
inline constexpr double band_share = 0.9, unseen_widening = 1.25;

/// The error of one published value: log(simulated / published).
struct served_error {
  std::string engine, stack, kind, gpu, architecture, model;
  std::string metric;  ///< "tpot", "ttft" or "throughput"; `kind` as from `error_kind`
  precision format = precision::bf16;
  double log_error = 0;
};

/// Builds `"calibration"` of an engine's stack: measured GPUs and precisions, and 90 % widths by kind, by
/// architecture and by cell ("GPU/model"). The widths exceed the errors of the fit, because rows outside it have
/// larger errors. Groups with few values have no widths.
value calibration_of(const std::vector<served_error>& fitted, const std::string& engine);
/// Builds `"release"` of a stack; empty with few values.
value release_widths(const std::vector<served_error>& fitted, const std::string& stack);

/// Builds `"elsewhere"` of an engine: the widths on what was left out, of all engines where it has few values.
value widths_elsewhere(const std::vector<served_error>& left_out, const std::string& engine);
/// Fraction of left-out GPUs' values inside bands derived from the other left-out ones.
double coverage_elsewhere(const std::vector<served_error>& left_out);

}  // namespace nvlsim
