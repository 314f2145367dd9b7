// Serving by pools of prefill and decode workers as a plan.
#pragma once

#include <functional>

#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/serving/disaggregation.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/limits.hpp"

namespace nvlsim {

/// The decode workers of a pooled workload as a workload of their own.
inference_workload decode_workload(const inference_workload& w);

/// What a prefill worker sends to a decode worker for a prompt of so many tokens, through its busiest port.
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
