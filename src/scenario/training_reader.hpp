// Reading the training workload of a scenario.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// Reads `"workload"` of kind "training"; The caller sets `placement`. Accepts Megatron-LM's long names.
training_workload read_training_workload(config::reader& r);
/// `"workload"` that reads as this one, every member of it; without placement and degraded hardware.
value write_training_workload(const training_workload& w);

}  // namespace nvlsim
