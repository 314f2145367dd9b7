// What the points of a sweep gave, for a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim {

/// A point of a sweep and what it gave.
struct sweep_row {
  std::int64_t index = 0;
  std::vector<std::pair<std::string, value>> set;  ///< JSON pointers and values; the last of a pointer counts
  value record;                                    ///< with its `metrics`; null if it has not run
};

/// A table of at most 80 columns: a row for each point that ran, with the settings that differ between the points
/// and the main metrics of its kind. The first twenty points; a line counts the others. Empty if no point ran.
std::string sweep_table(const std::vector<sweep_row>& points);

}  // namespace nvlsim
