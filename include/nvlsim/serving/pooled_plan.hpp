// Plans of disaggregated serving, with pools of prefill and decode workers.
#pragma once

#include <functional>

#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/serving/disaggregation.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/limits.hpp"

namespace nvlsim {

/// The workload of the decode pool's workers.
inference_workload decode_workload(const inference_workload& w);

/// KV cache transfer of a prompt of `tokens` tokens from a prefill to a decode worker, through the busiest port.
/// [docs/models-and-assumptions.md#kv-transfer]
priced_transfer kv_transfer(const platform& p, const stack& s, const model& m, const inference_workload& w,
                            double tokens);

/// Limits of the workers of both pools. `reasons` gets why they cannot take the longest request.
pool_setup setup_pools(const serving_case& c, request_extent longest, std::vector<std::string>& reasons);

/// Requires a pooled workload, a stack with an inference section and no `serving_problems`; fills `run` but for
/// its reasons. `explained`: parts have facts.
void plan_pools(const serving_case& c, const pool_setup& setup, const request_lengths& lengths, inference_run& run,
                bool explained = false);

}  // namespace nvlsim
