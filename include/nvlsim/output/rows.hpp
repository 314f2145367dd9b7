// Flattens sections of a result into rows, for formats without nesting.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim::output {

/// One row of a section. A nested object gives a heading (null value) and its members one level deeper. An array
/// of objects gives one row per element, with the element's `name`, first number and `reason`.
struct section_row {
  std::size_t depth = 0;
  std::string label;
  std::string key;  ///< ends with the unit
  value content;    ///< a scalar
  std::string reason;
  bool heading = false;
};
std::vector<section_row> rows_of(const value& section);

/// A scalar metric. Members of a distribution are named "ttft_s.p99".
struct flat_metric {
  std::string name;
  std::string key;  ///< ends with the unit: "ttft_s"
  value content;
};
std::vector<flat_metric> flat_metrics(const value& metrics);

/// Appends `name` if `into` does not contain it, keeping the order of first appearance.
void merge_names(std::vector<std::string>& into, std::string_view name);

}  // namespace nvlsim::output
