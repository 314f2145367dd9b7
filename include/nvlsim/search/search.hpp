// The best of all layouts of a model on so many GPUs.
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

/// Layout parameters keep to these values, written as in a scenario: {"tp", {"4", "8"}}. No values: the scenario's
/// own.
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

/// Tries every layout of `s` on `options.gpus` GPUs of its platform, with as many racks as they need: the
/// closed-form longest path of its plan, which is what a run of it gives. [docs/search.md] Throws input_error with
/// every problem of the options.
search_result search_layouts(const scenario& s, const search_options& options);

}  // namespace nvlsim
