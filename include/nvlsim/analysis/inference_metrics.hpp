// Rates and latency distributions of an inference run.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

/// Statistics of a set of values. Percentiles use the nearest rank, so each is one of the values.
struct distribution {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

/// Metrics as clients see them. Rates divide by the makespan; per-GPU rates divide by all GPUs of the layout, idle
/// ones included. A metric that no request can show is empty: for example, time between tokens when every output
/// is one token.
struct inference_metrics {
  double output_tokens_per_s = 0, output_tokens_per_s_per_gpu = 0;
  double total_tokens_per_s = 0, total_tokens_per_s_per_gpu = 0;  ///< prompts and outputs
  double requests_per_s = 0;
  std::optional<double> output_tokens_per_s_per_user;  ///< 1 / mean TPOT
  double kv_cache_used_fraction = 0;                   ///< peak reservation in the fullest replica
  distribution ttft_s;                                 ///< from arrival to first token, including the front end
  distribution queue_s;                ///< from arrival to the start of the request's first iteration
  distribution e2e_s;                  ///< from arrival to last token
  std::optional<distribution> tpot_s;  ///< (e2e - TTFT) / (output - 1) per request with at least two output tokens
  std::optional<distribution> itl_s;   ///< gaps between consecutive tokens of a request, pooled over requests
  // Only for runs with arrivals over time.
  std::optional<double> offered_requests_per_s;  ///< counted arrivals per second; empty for closed loops and when
                                                 ///< all requests arrive at once
  double requests_in_flight = 0;                 ///< mean over the measured time, queued requests included
  double prefix_cache_hit_fraction = 0;          ///< fraction of prompt tokens
  std::int64_t preemptions = 0;
  std::int64_t measured_requests = 0;
  std::optional<double> slo_attained_fraction;   ///< fraction of counted requests within every limit
  std::optional<double> goodput_requests_per_s;  ///< requests within every limit, per second
  bool objective_met = false;                    ///< the required fraction of requests is within each limit
  bool saturated = false;                        ///< requests arrived faster than they could be served
  bool still_fills = false;  ///< the queue was still growing when the last request arrived: the run is too short
};

/// Requires `t` to be the timeline of `run.work`, and at least one served request.
inference_metrics measure_inference(const inference_run& run, const timeline& t);

/// Request records of one replica of each class. The class index is their replica index.
std::vector<request_record> records_of(const inference_run& run, const timeline& t);

/// Metrics of a run with arrivals over time. Distributions cover the counted requests
/// (docs/serving.md#what-counts). Rates cover the time between the first and last completion of counted requests;
/// they cover the whole run when all requests count or the server is saturated.
inference_metrics measure_serving(const serving_run& run, const inference_workload& w);

/// Begin and end of the time that rates cover, in seconds.
std::pair<double, double> counted_time(const serving_outcome& o, const inference_workload& w);
/// First and last arrival of the requests that distributions cover, in seconds.
std::pair<double, double> counted_arrivals(const serving_outcome& o, const measured_part& part);

}  // namespace nvlsim
