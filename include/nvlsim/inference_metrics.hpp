// What an inference run achieved: rates and latency distributions.
#pragma once

#include <cstdint>
#include <optional>

#include "nvlsim/inference.hpp"
#include "nvlsim/plan.hpp"

namespace nvlsim {

/// Of many values; percentiles by nearest rank, so that each is one of the values.
struct distribution {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

/// As the clients see it. Rates are over the makespan and all GPUs of the layout, idle ones included. Nothing stands
/// for what no request shows (a time between tokens when all outputs are one token).
struct inference_metrics {
  double output_tokens_per_s = 0, output_tokens_per_s_per_gpu = 0;
  double total_tokens_per_s = 0, total_tokens_per_s_per_gpu = 0;  ///< prompts and outputs
  double requests_per_s = 0;
  std::optional<double> output_tokens_per_s_per_user;  ///< 1 / mean TPOT
  double kv_cache_used_fraction = 0;                   ///< reserved at the peak, of the fullest replica
  distribution ttft_s;   ///< from the arrival to the first token, with what a server in front adds
  distribution queue_s;  ///< from the arrival to the start of the first iteration that works on the request
  distribution e2e_s;    ///< from the arrival to the last token
  std::optional<distribution> tpot_s;  ///< (e2e - TTFT) / (output - 1) of each request of two tokens or more
  std::optional<distribution> itl_s;   ///< every gap between two tokens of a request, pooled
};

/// `t` must be the timeline of `run.work`, with at least one request served.
inference_metrics measure_inference(const inference_run& run, const timeline& t);

}  // namespace nvlsim
