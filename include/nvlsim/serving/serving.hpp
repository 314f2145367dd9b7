// Serving with a clock: requests arrive over time, and replicas behind a router batch them.
// [docs/models-and-assumptions.md#inference-online]
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

/// Times of one request, in seconds since the start of the run as seen by the engine; negative if not reached.
struct request_record {
  double arrival_s = -1, admitted_s = -1, first_token_s = -1, last_token_s = -1;
  std::int32_t input = 0, output = 0;
  std::int32_t cached = 0;   ///< prompt tokens found in the prefix cache
  std::int32_t worker = -1;  ///< worker that decodes
  std::int32_t preemptions = 0;
  std::int32_t workers = 1;  ///< number of equal workers that it represents
  // With pools: prefill worker, end of prefill and arrival of the cache.
  std::int32_t prompt_worker = -1;
  double prefilled_s = -1, delivered_s = -1;
};

/// A value that occurs `count` times.
struct weighted {
  double value = 0;
  std::int64_t count = 0;
};

/// Histogram with bins of 0.2 %. Each bin is represented by its mean.
class value_histogram {
 public:
  void add(double value, std::int64_t count);
  std::vector<weighted> values() const;

 private:
  struct bin {
    double sum = 0;
    std::int64_t count = 0;
  };
  std::vector<bin> bins_;
};

/// A quantity over time, as means over at most 1,024 equal intervals.
class time_series {
 public:
  void add(double from, double to, double value);
  std::vector<std::pair<double, double>> points() const;

 private:
  static constexpr std::size_t max = 1024;
  double width_ = 1e-3;
  std::vector<double> areas_;
};

/// Time of an iteration, and the pricing's class that it belongs to.
struct iteration_price {
  double seconds = 0;
  std::int32_t kind = 0;
};
using iteration_pricing = std::function<iteration_price(const iteration&)>;

/// Workers that only prefill. Each sends its caches to the decode workers one after the other.
struct prefill_settings {
  schedule_limits worker;
  std::int64_t workers = 1;
  iteration_pricing price;
  std::function<double(std::int64_t)> transfer;  ///< seconds for the KV cache of a prompt with that many tokens
};

struct server_settings {
  schedule_limits worker;
  std::int64_t workers = 1;
  router_policy router = router_policy::round_robin;
  std::int64_t clients = 0;  ///< of a closed loop; 0: requests arrive at their arrival times
  /// With prefill workers, a request goes to the one with the fewest tokens to compute and its cache to the decode
  /// worker with the fewest unfinished requests.
  std::optional<prefill_settings> prefill;
  bool prompts_cached = false;   ///< requests arrive with their KV caches
  bool keep_iterations = false;  ///< keeps all iterations, not only the first
};

/// Most iterations that a run keeps for its trace, over all workers, unless `keep_iterations`.
inline constexpr std::int64_t traced_iterations = 100'000;
struct traced_iteration {
  double begin_s = 0, end_s = 0;
  std::int32_t kind = 0, decodes = 0;
};

/// One worker's part of a run.
struct worker_record {
  bool prefills = false;  ///< prefills only; such workers follow the others
  time_series running, queued, kv_tokens;
  std::vector<traced_iteration> iterations;  ///< the first iterations
  std::int64_t iterations_in_all = 0;
  std::int64_t peak_kv_tokens = 0;
  double busy_s = 0;
};

struct serving_outcome {
  std::vector<request_record> requests;
  std::vector<worker_record> workers;
  value_histogram gaps;            ///< between consecutive tokens of a request
  double end_s = 0;                ///< time of the last token
  std::int64_t prompt_tokens = 0;  ///< computed, including recomputed ones
  std::int64_t output_tokens = 0;
  std::int64_t recomputed_tokens = 0, swapped_tokens = 0;
  double requests_times_s = 0;  ///< integral of the requests in flight over time
  struct load_seen {
    std::int64_t waiting = 0;    ///< not yet admitted by a worker: requests, prompts and delivered caches
    std::int64_t in_flight = 0;  ///< arrived but not finished
  };
  load_seen at_half, at_last;  ///< when half and when all requests have arrived
};

/// Serves all requests. Throws internal_error if one fits no iteration or no cache.
serving_outcome serve_requests(const request_list& list, const server_settings& settings,
                               const iteration_pricing& price);

/// Use of one class of iterations: mean content, count and time.
struct iteration_use {
  operation_template operation;
  double count = 0, seconds = 0;
  int gpus = 1;  ///< per worker
};

/// A served load, with everything that results need.
struct serving_run {
  serving_outcome outcome;
  std::vector<iteration_use> uses;  ///< by kind
  memory_report memory;
  front_end_costs front_end;
  std::int64_t kv_capacity_tokens = 0;
  std::vector<std::string> reasons;  ///< why it cannot run; empty when it can
  std::vector<std::string> notes;
};

/// The workers of a run as a plan that has been run, for traces: the first iterations, and counters of what runs,
/// waits and is cached.
struct serving_picture {
  plan planned;
  timeline times;
  std::vector<trace_counter> counters;
};
/// At most 64 workers, unless `whole`.
serving_picture trace_serving(const serving_run& run, const inference_workload& w, bool whole = false);

/// The same counters for a run in token time, by class, without caches for pools. Ignores the plan of `run`.
std::vector<trace_counter> count_over_time(const inference_run& run, const timeline& times,
                                           const std::vector<request_record>& requests);

/// Whether the load needs a clock; else `plan_inference` simulates it in token time, with the same engine.
bool needs_clock(const stack& s, const inference_workload& w);

struct serving_options {
  std::optional<std::int64_t> kv_capacity_tokens = {};  ///< of a worker, in place of what the memory model gives
  bool explained = false;                               ///< keeps all iterations, and the facts of their parts
};
serving_run serve(const platform& p, const stack& s, const model& m, const inference_workload& w,
                  const serving_options& options = {});

}  // namespace nvlsim
