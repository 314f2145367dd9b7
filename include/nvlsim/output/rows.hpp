// Sections of a result as flat rows, for the formats that are no trees.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim::output {

/// One line of a section. A nested object gives a heading (null value) and its members one level deeper; an array
/// of objects gives a row an element, named by its `name`, with its first number and its `reason`.
struct section_row {
  std::size_t depth = 0;
  std::string label;
  std::string key;  ///< whose ending tells the unit
  value content;    ///< a scalar
  std::string reason;
  bool heading = false;
};
std::vector<section_row> rows_of(const value& section);

/// Scalar metrics in order, those inside a distribution as "ttft_s.p99".
struct flat_metric {
  std::string name;
  std::string key;  ///< whose ending tells the unit: "ttft_s"
  value content;
};
std::vector<flat_metric> flat_metrics(const value& metrics);

/// Names over several lists in order of first appearance, each once.
void merge_names(std::vector<std::string>& into, std::string_view name);

}  // namespace nvlsim::output
