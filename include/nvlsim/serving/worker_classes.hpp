// Serving on degraded hardware. [docs/models-and-assumptions.md#degraded]
#pragma once

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Splits the classes of a run into lanes on equal hardware, or into single lanes without `fold`. On slow hardware
/// iterations have the same content but take longer. Requires a run without reasons. Does not change runs with
/// pools.
void split_lanes(inference_run& run, const platform& p, const stack& s, const model& m,
                 const inference_workload& w, bool fold);

}  // namespace nvlsim
