// Prefill and decode on workers of their own, as events: what each iteration holds depends on when prompts are
// done. [docs/models-and-assumptions.md#disaggregation]
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Equal workers of a pool.
struct pool_limits {
  int workers = 1;
  schedule_limits lane;  ///< of each
};

/// What things take, in seconds.
struct pool_prices {
  std::function<double(const iteration&)> prefill, decode;
  std::function<double(std::int64_t)> transfer;  ///< of the cache of a prompt of so many tokens
};

struct pool_setup {
  pool_limits prefill, decode;
  bool prompts_cached = false;   ///< no prefill and no transfer
  std::int64_t concurrency = 0;  ///< requests in flight; 0: all are there at the start
};

/// Runs requests of the given lengths (one token or more) through both pools. Each goes to the worker with the
/// least to do. Throws internal_error when a request fits no decode worker.
pooled_schedule schedule_pools(const request_lengths& lengths, const pool_setup& s, const pool_prices& prices);

}  // namespace nvlsim
