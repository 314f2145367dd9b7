// Serving on degraded hardware. [docs/models-and-assumptions.md#degraded]
#pragma once

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Splits the classes of a run into workers on equal hardware; into single workers unless `fold`. Iterations hold
/// the same on slow hardware, they take longer. Requires a run without reasons; leaves one alone whose workers
/// wait for each other.
void split_workers(inference_run& run, const serving_case& c, bool fold);

}  // namespace nvlsim
