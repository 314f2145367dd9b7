// Pools of workers of their own for prompts and for decoding. [docs/models-and-assumptions.md#disaggregation]
#pragma once

#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// The workload as the workers of the prefill pool see it. Requires one.
inference_workload prefill_workload(const inference_workload& w);
/// The workload as the workers of the decode pool see it.
inference_workload decode_workload(const inference_workload& w);

/// KV cache transfer of a prompt of `tokens` tokens from a prefill to a decode worker, through the busiest port.
/// `distance`: between their GPUs on the fabric; 0: they are under one leaf.
/// [docs/models-and-assumptions.md#kv-transfer]
priced_transfer kv_transfer(const serving_case& c, double tokens, std::int64_t distance = 0);

}  // namespace nvlsim
