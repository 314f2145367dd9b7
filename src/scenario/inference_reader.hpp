// The inference workload of a scenario.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/model/model.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Reads `"workload"` of kind "inference"; `seed` is set by the caller. TensorRT-LLM's and vLLM's long names are
/// accepted. What the scenario does not say about precision is what the model's checkpoint says.
inference_workload read_inference_workload(config::reader& r, const checkpoint_spec& checkpoint = {});

}  // namespace nvlsim
