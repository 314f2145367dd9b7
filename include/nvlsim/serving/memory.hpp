// GPU memory of a serving replica, and its KV cache capacity.
#pragma once

#include <string>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

struct serving_memory {
  memory_report report;
  std::int64_t kv_capacity_tokens = 0;  ///< per worker
  bytes kv_per_token;                   ///< per GPU, in layers that keep every token
  int kv_block_tokens = 1;
  std::int64_t max_sequences = 0;  ///< per rank, that a pool for their states holds; 0: no such pool
  sequence_cache sequence;
  std::string no_cache;  ///< why there is no KV cache; empty if there is one
};

/// Weights of a GPU that stay in CPU memory.
bytes offloaded_weights(const engine_settings& s);

/// Why weights cannot stay in CPU memory as the engine's settings ask: no link, no room, or fewer weights than
/// that in the layers of a GPU. `planned` has what stays. Empty if they can, or if none are to stay there.
std::vector<std::string> offload_problems(const platform& p, const inference_profile& engine,
                                          const inference_workload& w, const memory_report& planned);

/// Requires `s.inference`. The report has no KV cache item if nothing fits.
/// [docs/models-and-assumptions.md#inference-memory]
serving_memory plan_serving_memory(const platform& p, const stack& s, const model& m, const inference_workload& w);

}  // namespace nvlsim
