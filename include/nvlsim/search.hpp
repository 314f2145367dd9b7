// The best of all layouts of a model on so many GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/scenario.hpp"
#include "nvlsim/value.hpp"

namespace nvlsim {

/// Layout parameters keep to these values, written as in a scenario: {"tp", {"4", "8"}}. No values: the scenario's own.
struct search_restriction {
  std::string parameter;
  std::vector<std::string> values;
};

struct search_options {
  std::int64_t gpus = 0;
  std::string objective;                 ///< metric to rank by; that of the workload's kind when empty
  std::vector<std::string> constraints;  ///< what layouts keep to: "memory_peak_bytes<2.5e11", "tp<=8"
  std::vector<std::string> pareto;       ///< metrics of the front beside the objective; one when empty
  std::vector<search_restriction> restrictions;
  std::size_t top = 10;                                             ///< best layouts to return
  int jobs = 1;                                                     ///< threads
  std::function<void(std::int64_t done, std::int64_t all)> report;  ///< of candidates; from one thread at a time
  std::function<bool()> stop;  ///< asked before layouts: those not tried are left out as "interrupted"
};

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

/// Tries every layout of `s` on `options.gpus` GPUs of its platform, with as many racks as they need: the closed-form
/// longest path of its plan, which is what a run of it gives. [docs/search.md]
/// Throws input_error with every problem of the options.
search_result search_layouts(const scenario& s, const search_options& options);

value search_json(const search_result& r);
std::string search_csv(const search_result& r);
/// For a terminal of 80 columns, longer where a layout has many parameters.
std::string search_text(const search_result& r);

}  // namespace nvlsim
