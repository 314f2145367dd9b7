// What the formulas of metrics are made of, counted from a run.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// By the names that formulas have for them.
using metric_amounts = std::map<std::string, double, std::less<>>;

/// Counts them from the scenario, the plan, its times, the requests and the energy of a run. None is taken from a
/// metric, so that a formula checks the metric that it explains.
metric_amounts amounts_of(const scenario& s, const run_record& run);

/// When requests count for rates: the whole run, but for a load with a warm-up or a tail.
struct counted_span {
  double from = 0, to = 0;
  bool whole = true;
};
counted_span counted_span_of(const run_record& run);

}  // namespace nvlsim
