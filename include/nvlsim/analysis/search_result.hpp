// The outcome of a layout search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim {

/// A layout that meets the constraints: one value per parameter, one number per metric (empty if unknown).
struct found_layout {
  std::vector<value> parameters;
  std::vector<std::optional<double>> metrics;
};

/// Layouts left out for one kind of reason. "N" in `reason` stands for numbers that differ between layouts.
struct pruned_layouts {
  std::string reason;
  std::int64_t count = 0;
  std::string example;  ///< the first one: reason and layout
};

struct search_result {
  std::string scenario, objective;
  std::int64_t gpus = 0;
  bool smaller_is_better = true;
  std::vector<std::string> parameters, pointers;          ///< names, and their pointers in a scenario
  std::vector<std::pair<std::string, value>> everywhere;  ///< pointers and values common to all layouts
  std::vector<std::string> metrics, front_metrics;
  std::vector<found_layout> best;      ///< best first
  std::vector<found_layout> front;     ///< Pareto front over `front_metrics`
  std::vector<pruned_layouts> pruned;  ///< most first
  std::int64_t candidates = 0, evaluated = 0, found = 0;
  /// No layout has a better objective: that of the best, or after an interruption what those not tried can reach
  /// at most; empty if that is not known.
  std::optional<double> bound;
  double wall_s = 0;
};

}  // namespace nvlsim
