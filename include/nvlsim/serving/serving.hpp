// Serving with a clock: requests arrive in time, replicas behind a router batch them.
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

/// What became of a request. Times are seconds from the start of the run, as the engine sees them; negative before
/// they happen.
struct request_record {
  double arrival_s = -1, admitted_s = -1, first_token_s = -1, last_token_s = -1;
  std::int32_t input = 0, output = 0;
  std::int32_t cached = 0;  ///< prompt tokens that the prefix cache had
  std::int32_t lane = -1;   ///< that decodes
  std::int32_t preemptions = 0;
  std::int32_t lanes = 1;  ///< equal ones that it stands for
  // Through pools: the lane that had the prompt, when it was done, and when its cache had come.
  std::int32_t prompt_lane = -1;
  double prefilled_s = -1, delivered_s = -1;
};

/// A value that occurs `count` times.
struct weighted {
  double value = 0;
  std::int64_t count = 0;
};

/// How many values lie in bins of 0.2 %; each bin stands for its mean.
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

/// A quantity over time as means over equal pieces of it, at most 1,024.
class time_series {
 public:
  void add(double from, double to, double value);
  std::vector<std::pair<double, double>> points() const;

 private:
  static constexpr std::size_t most = 1024;
  double width_ = 1e-3;
  std::vector<double> areas_;
};

/// How an iteration is paid for: its time, and which of the pricing's classes it is of.
struct iteration_price {
  double seconds = 0;
  std::int32_t kind = 0;
};
using iteration_pricing = std::function<iteration_price(const iteration&)>;

/// Lanes that work on prompts alone, and send the caches to those that decode, each one after the other.
struct prefill_settings {
  schedule_limits lane;
  std::int64_t lanes = 1;
  iteration_pricing price;
  std::function<double(std::int64_t)> transfer;  ///< seconds, of the cache of a prompt of so many tokens
};

struct server_settings {
  schedule_limits lane;
  std::int64_t lanes = 1;
  router_policy router = router_policy::round_robin;
  std::int64_t clients = 0;  ///< of a closed loop; 0: requests come when they say
  /// With them requests go to the one with the least to compute, their caches to the lane with the fewest in hand.
  std::optional<prefill_settings> prefill;
  bool prompts_cached = false;   ///< requests come with their caches
  bool keep_iterations = false;  ///< all of them, not the first ones
};

/// That a run keeps for its trace, of all lanes, unless all are wanted.
inline constexpr std::int64_t traced_iterations = 100'000;
struct traced_iteration {
  double begin_s = 0, end_s = 0;
  std::int32_t kind = 0, decodes = 0;
};

/// One lane's part of a run.
struct lane_record {
  bool prefills = false;  ///< works on prompts alone; such lanes come after the others
  time_series running, queued, kv_tokens;
  std::vector<traced_iteration> iterations;  ///< the first ones
  std::int64_t iterations_in_all = 0;
  std::int64_t peak_kv_tokens = 0;
  double busy_s = 0;
};

struct serving_outcome {
  std::vector<request_record> requests;
  std::vector<lane_record> lanes;
  value_histogram gaps;            ///< between two tokens of a request
  double end_s = 0;                ///< the last token
  std::int64_t prompt_tokens = 0;  ///< computed, with what was computed again
  std::int64_t output_tokens = 0;
  std::int64_t recomputed_tokens = 0, swapped_tokens = 0;
  double requests_times_s = 0;  ///< integral of the requests in flight over time
  struct load_seen {
    std::int64_t waiting = 0;    ///< for a lane to take them: whole requests, prompts, and caches that have come
    std::int64_t in_flight = 0;  ///< arrived and not finished
  };
  load_seen at_half, at_last;  ///< as half and all of the requests have arrived
};

/// Serves every request. Throws internal_error when one fits no iteration or no cache.
serving_outcome serve_requests(const request_list& list, const server_settings& settings,
                               const iteration_pricing& price);

/// Of an iteration class: how often it ran, what it held in the mean.
struct iteration_use {
  work_template work;
  double count = 0, seconds = 0;
  int gpus = 1;  ///< of the lane that ran it
};

/// A served load with all that results need.
struct serving_run {
  serving_outcome outcome;
  std::vector<iteration_use> uses;  ///< by kind
  memory_report memory;
  front_end_costs front_end;
  std::int64_t kv_capacity_tokens = 0;
  std::vector<std::string> reasons;  ///< why it cannot run; empty when it can
  std::vector<std::string> notes;
};

/// The lanes of a run as a plan that has been run, for traces: the first iterations, and counters of what runs,
/// waits and is cached.
struct serving_picture {
  plan work;
  timeline times;
  std::vector<trace_counter> counters;
};
/// At most 64 lanes, unless `whole`.
serving_picture draw_serving(const serving_run& run, const inference_workload& w, bool whole = false);

/// The same counters of a run in token time, by class; those of pools have no caches. The plan of `run` is not
/// looked at.
std::vector<trace_counter> count_over_time(const inference_run& run, const timeline& times,
                                           const std::vector<request_record>& requests);

/// Whether the load needs a clock; else `plan_inference` simulates it in token time, with the same engine.
bool needs_clock(const stack& s, const inference_workload& w);

struct serving_options {
  std::optional<std::int64_t> kv_capacity_tokens = {};  ///< of a lane, in place of what the memory model gives
  bool explained = false;                               ///< keeps all iterations, and the facts of their parts
};
serving_run serve(const platform& p, const stack& s, const model& m, const inference_workload& w,
                  const serving_options& options = {});

}  // namespace nvlsim
