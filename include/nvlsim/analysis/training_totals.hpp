// Metrics of a step of which only the makespan is known.
#pragma once

#include "nvlsim/analysis/training_metrics.hpp"
#include "nvlsim/training/step_cache.hpp"

namespace nvlsim {

/// As measure_training, from the makespan alone: waits are not told apart, so that `bubble_fraction`,
/// `exposed_communication` and the waits of `mean` stay zero.
training_metrics measure_training_totals(const platform& p, const model& m, const training_workload& w,
                                         const step_cost& step);

}  // namespace nvlsim
