// Searches the best layout of a model on a given number of GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/search_result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Restricts a layout parameter to these values, written as in a scenario: {"tp", {"4", "8"}}. Without values, to
/// the scenario's own value.
struct search_restriction {
  std::string parameter;
  std::vector<std::string> values;
};

struct search_options {
  std::int64_t gpus = 0;
  std::string objective;                 ///< metric to rank by; empty: the default for the kind of workload
  std::vector<std::string> constraints;  ///< conditions on layouts: "memory_peak_bytes<2.5e11", "tp<=8"
  std::vector<std::string> pareto;       ///< further metrics of the Pareto front; empty: one default
  std::vector<search_restriction> restrictions;
  std::size_t top = 10;  ///< number of best layouts to return
  int jobs = 1;          ///< threads
  /// Evaluates every layout. Otherwise, where the objective follows from the step time, layouts that cannot be
  /// among the best or on the front by lower bounds are left out; the best and the front are the same.
  /// [docs/search.md]
  bool exhaustive = false;
  std::function<void(std::int64_t done, std::int64_t all)>
      report;                  ///< layouts, without those found to be impossible; called by one thread at a time
  std::function<bool()> stop;  ///< polled between layouts; once true, the rest are left out as "interrupted"
};

/// Finds the best layouts of `s` on `options.gpus` GPUs of its platform, with as many racks as they need. An
/// evaluation is the longest path of the plan and equals the result of a run. Throws input_error with every
/// problem of the options. [docs/search.md]
search_result search_layouts(const scenario& s, const search_options& options);

}  // namespace nvlsim
