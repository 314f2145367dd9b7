// Rates and latency distributions of an inference run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/job_energy.hpp"
#include "nvlsim/facility/site_figures.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

/// Statistics of a set of values. Percentiles use the nearest rank, so each is one of the values.
struct distribution {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

/// Nothing when there is no value.
std::optional<distribution> distribution_of(std::vector<weighted> values);

/// A request as its client sees it. [docs/models-and-assumptions.md#inference-front-end]
struct client_view {
  double ttft_s = 0, e2e_s = 0;
  std::optional<double> tpot_s;
  bool keeps(const service_objective& o) const;  ///< every limit, where percentiles are given that of the highest
  std::optional<double> latency_of(latency l) const;
};
client_view seen_by_client(const request_record& r, const front_end_costs& server);

/// As the clients see it. Rates are over the counted time and all GPUs of the layout, idle ones included. Nothing
/// stands for what no request shows (a time between tokens when all outputs are one token).
struct inference_metrics {
  double output_tokens_per_s = 0, output_tokens_per_s_per_gpu = 0;
  double total_tokens_per_s = 0, total_tokens_per_s_per_gpu = 0;  ///< prompts and outputs
  double requests_per_s = 0;
  std::optional<double> output_tokens_per_s_per_user;  ///< 1 / mean TPOT
  double kv_cache_used_fraction = 0;                   ///< at the peak, of the fullest replica
  distribution ttft_s;   ///< from the arrival to the first token, with what a server in front adds
  distribution queue_s;  ///< from the arrival to the start of the first iteration that works on the request
  distribution e2e_s;    ///< from the arrival to the last token
  std::optional<distribution> tpot_s;  ///< (e2e - TTFT) / (output - 1) of each request of two tokens or more
  std::optional<distribution> itl_s;   ///< every gap between two tokens of a request, pooled
  std::optional<double> offered_requests_per_s;  ///< arrivals that count, a second; nothing where no time passes
                                                 ///< between them, and of loads that wait for answers
  double requests_in_flight = 0;                 ///< mean over the time of the rates, queued ones included
  double time_in_system_s = 0;  ///< what requests spent in it during the time of the rates, for each of the rates
  double prefix_cache_hit_fraction = 0;  ///< of the prompt tokens
  std::int64_t preemptions = 0;
  std::int64_t measured_requests = 0;
  std::optional<double> slo_attained_fraction;   ///< fraction of counted requests within every limit
  std::optional<double> goodput_requests_per_s;  ///< requests within every limit, per second
  bool objective_met = false;                    ///< the required fraction of requests is within each limit
  bool saturated = false;                        ///< requests arrived faster than they could be served
  bool still_fills = false;  ///< the queue was still growing when the last request arrived: the run is too short
};

/// The KV cache of the fullest replica, in tokens.
struct kv_cache_use {
  std::int64_t peak_tokens = 0, capacity_tokens = 0;
};
kv_cache_use cache_use_of(const serving_run& run);

/// What a served load achieved and what it took.
struct served_metrics {
  inference_metrics seen;  ///< by its clients
  job_energy energy;
  std::optional<dollars> cost;  ///< nothing when no price is known
  seconds makespan;
  double output_tokens = 0;  ///< of the whole run
  bytes memory_peak;
  std::int64_t peak_kv_tokens = 0;  ///< of the fullest replica
  std::int64_t gpus = 0;
  std::int64_t recomputed_tokens = 0;
  std::optional<site_figures> site;  ///< of the whole run
};

/// Metrics of a served load, with at least one request. Distributions cover the counted requests
/// (docs/serving.md#what-counts). Rates cover the time between the first and last completion of counted requests;
/// they cover the whole run when all requests count or the server is saturated.
inference_metrics measure_inference(const serving_run& run, const inference_workload& w);

/// The share of a request that counts for rates between two times: the share of its tokens made there. With
/// `whole` they are those of the whole run, and a request of one token counts wherever it ends.
double counted_share(const request_record& r, double from, double to, bool whole);
/// Of the time from a request's arrival to its last token what lies between two times. Its client sees that token
/// a little later, where a server is in front of the engine.
double time_in_system(const request_record& r, double from, double to);

/// The time that rates are of.
std::pair<double, double> counted_time(const serving_outcome& o, const inference_workload& w);
/// Why rates and latencies of a run say little: it is too short to have a steady part, or for its latencies. Empty
/// where they do.
std::vector<std::string> too_short(const serving_outcome& o, const inference_workload& w,
                                   const inference_metrics& m);
/// First and last arrival of the requests that distributions cover, in seconds.
std::pair<double, double> counted_arrivals(const serving_outcome& o, const measured_part& part);

}  // namespace nvlsim
