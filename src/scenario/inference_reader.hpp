// The inference workload of a scenario.
#pragma once

#include "config/reader.hpp"
#include "nvlsim/inference.hpp"

namespace nvlsim {

/// Reads `"workload"` of kind "inference"; `seed` is set by the caller. TensorRT-LLM's and vLLM's long names are
/// accepted.
inference_workload read_inference_workload(config::reader& r);

}  // namespace nvlsim
