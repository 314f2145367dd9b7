// What a serving replica keeps in GPU memory, and how many KV tokens that leaves.
#pragma once

#include <string>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

struct serving_memory {
  memory_report report;
  std::int64_t kv_capacity_tokens = 0;  ///< of one lane
  bytes kv_per_token;                   ///< on one GPU, in layers that keep every token
  sequence_cache sequence;
  std::string no_cache;  ///< why there can be none; empty where there is one
};

/// Requires `s.inference`. A report that does not fit has no KV cache.
/// [docs/models-and-assumptions.md#inference-memory]
serving_memory plan_serving_memory(const platform& p, const stack& s, const model& m, const inference_workload& w);

}  // namespace nvlsim
