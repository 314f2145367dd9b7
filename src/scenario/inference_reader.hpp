// Reading the inference workload of a scenario.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/model/model.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Reads `"workload"` of kind "inference"; The caller sets `seed`. Accepts the long names of TensorRT-LLM and
/// vLLM. Precisions that the scenario omits come from the model's checkpoint.
inference_workload read_inference_workload(config::reader& r, const checkpoint_spec& checkpoint = {});

}  // namespace nvlsim
