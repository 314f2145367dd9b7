// The scheduler under a load that is there at the start.
#pragma once

#include "nvlsim/serving/inference.hpp"

namespace nvlsim::test {

/// All requests at the start, the whole output reserved.
inline batching_schedule schedule_offline(const request_lengths& lengths, std::int64_t max_num_tokens,
                                          std::int64_t max_batch_size, prefill_policy prefill,
                                          std::int64_t kv_capacity_tokens, int kv_block_tokens) {
  schedule_limits l;
  l.settings.prefill = prefill;
  l.settings.max_num_tokens = max_num_tokens;
  l.settings.max_batch_size = max_batch_size;
  l.kv_capacity_tokens = kv_capacity_tokens;
  l.kv_block_tokens = kv_block_tokens;
  return schedule_requests(lengths, l);
}

}  // namespace nvlsim::test
