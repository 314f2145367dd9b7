// What a search for layouts found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim {

/// A layout that meets the constraints: a value a parameter, and a number or nothing a metric.
struct found_layout {
  std::vector<value> parameters;
  std::vector<std::optional<double>> metrics;
};

/// Layouts that were left out for the like of one reason. Numbers in it stand for others where it says "N".
struct pruned_layouts {
  std::string reason;
  std::int64_t count = 0;
  std::string example;  ///< the first one: reason and layout
};

struct search_result {
  std::string scenario, objective;
  std::int64_t gpus = 0;
  bool smaller_is_better = true;
  std::vector<std::string> parameters, pointers;          ///< names, and where a scenario has them
  std::vector<std::pair<std::string, value>> everywhere;  ///< pointers and values that all layouts have in common
  std::vector<std::string> metrics, front_metrics;
  std::vector<found_layout> best;      ///< best first
  std::vector<found_layout> front;     ///< layouts that no other one beats in all of `front_metrics`
  std::vector<pruned_layouts> pruned;  ///< most first
  std::int64_t candidates = 0, evaluated = 0, found = 0;
  double wall_s = 0;
};

}  // namespace nvlsim
