// The training workload of a scenario.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// Reads `"workload"` of kind "training"; `placement` is set by the caller. Megatron-LM's long names are accepted.
training_workload read_training_workload(config::reader& r);

}  // namespace nvlsim
