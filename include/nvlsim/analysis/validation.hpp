// Published measurements and their simulated values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "nvlsim/config/value.hpp"

namespace nvlsim {

enum class record_status { ok, infeasible, unsupported, error, excluded };
std::string_view name(record_status s);

/// One published number and its simulated value.
struct validation_record {
  std::string table, id, metric;               ///< together the key
  std::optional<double> published, simulated;  ///< in the unit of the column
  record_status status = record_status::error;
  std::string reason;  ///< empty when ok
  std::string suspect, notes;
  std::optional<std::pair<double, double>> band;  ///< 90 %, in the same unit
  // Summaries group rows by these. Blank ones form no group.
  std::string system, model, precision, kind, release, scenario;
  std::string cell;  ///< model, size of NVLink domain and bits of the operands, of training rows

  /// simulated/published - 1 when ok.
  std::optional<double> error() const;
};

}  // namespace nvlsim
