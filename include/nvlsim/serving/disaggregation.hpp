// Discrete-event schedule of separate prefill and decode workers. Iteration contents depend on when prompts
// finish. [docs/models-and-assumptions.md#disaggregation]
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// A pool of equal workers.
struct pool_limits {
  int workers = 1;
  schedule_limits worker;  ///< per worker
};

/// Durations in seconds.
struct pool_prices {
  std::function<double(const iteration&)> prefill, decode;
  std::function<double(std::int64_t)> transfer;  ///< of the KV cache of a prompt with that many tokens
};

struct pool_setup {
  pool_limits prefill, decode;
  bool prompts_cached = false;   ///< skips prefill and transfer
  std::int64_t concurrency = 0;  ///< most requests in flight; 0: all arrive at the start
};

/// Runs requests of the given lengths (at least one token each) through both pools. Each goes to the least loaded
/// worker. Throws internal_error if a request fits no decode worker.
pooled_schedule schedule_pools(const request_lengths& lengths, const pool_setup& s, const pool_prices& prices);

}  // namespace nvlsim
