// Metrics of a step when only its makespan is known.
#pragma once

#include "nvlsim/analysis/training_metrics.hpp"
#include "nvlsim/training/step_cache.hpp"

namespace nvlsim {

/// Like measure_training, but computed from the makespan alone. Waits are unknown: `bubble_fraction`,
/// `exposed_communication` and the waits in `mean` stay zero.
training_metrics measure_training_totals(const platform& p, const model& m, const training_workload& w,
                                         const step_cost& step);

}  // namespace nvlsim
