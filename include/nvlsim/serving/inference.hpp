// Serving with in-flight batching: which tokens each iteration holds, and how long it takes.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/layout/layout.hpp"
#include "nvlsim/model/model.hpp"
#include "nvlsim/plan/memory.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"
#include "nvlsim/serving/requests.hpp"
#include "nvlsim/stack/stack.hpp"
#include "nvlsim/units/precision.hpp"

namespace nvlsim {

enum class load_kind {
  offline,       ///< all requests are there at the start
  closed_loop,   ///< `concurrency` clients, each sends its next request when its last one ends
  static_batch,  ///< all requests enter one iteration together
  open_loop,     ///< requests arrive by a random process, whatever the server does
  trace          ///< requests arrive as a file says
};
/// Which replica takes a request.
enum class router_policy {
  round_robin,
  least_loaded,  ///< with the fewest requests in hand
  prefix_aware   ///< with the least to compute and to hold, counting what its cache already has
};

/// Speculative decoding: a step of a sequence checks `draft_tokens` guesses of the model's prediction module
/// beside its own token, and gives `tokens_per_step` on average.
/// [docs/models-and-assumptions.md#speculative-decoding]
struct speculation {
  int draft_tokens = 0;
  double tokens_per_step = 1;
};
/// Tokens of a step when each guess holds with that probability, given that those before it did.
double expected_tokens_per_step(int draft_tokens, double acceptance);

/// A pool of equal workers, with all that the scenario says of them.
struct pool_layout : rank_counts {
  engine_overrides engine;
};

/// The ranks and the settings of `engine` are those of the engines that decode.
struct inference_workload : rank_counts {
  precision weights = precision::bf16, kv_cache = precision::bf16;
  std::optional<precision> attention_weights, expert_weights;  ///< where they differ from `weights`
  engine_overrides engine;
  // load
  load_kind load = load_kind::offline;
  std::int64_t requests = 0;     ///< over all replicas
  std::int64_t concurrency = 0;  ///< over all replicas; of a closed loop
  token_lengths input, output;
  arrival_settings arrivals;                    ///< of an open loop, and of a trace without times
  std::string trace_file;                       ///< of a trace, as the scenario names it
  std::shared_ptr<const request_trace> replay;  ///< what it holds
  double rate_scale = 1;                        ///< of a trace: its arrivals come so many times as fast
  double tick_s = 0;                            ///< arrivals of a trace are spread over ticks so long
  std::optional<session_settings> sessions;
  std::optional<image_settings> images;
  bool front_end = true;  ///< loads other than offline come through a server; else the engine is called in process
  measured_part measured;
  service_objective objective;
  router_policy router = router_policy::round_robin;
  /// Prompts are worked on by workers of their own.
  /// [docs/models-and-assumptions.md#disaggregation]
  std::optional<pool_layout> prefill_pool;
  bool prompts_cached = false;  ///< decode workers alone: the caches of prompts are there when a request arrives
  speculation drafts;
  std::vector<degradation> degraded;
  std::uint64_t seed = 1;

  bool pooled() const { return prefill_pool.has_value() || prompts_cached; }
  int gpus() const;
};

/// A workload with what serves it; all must outlive it.
struct serving_case {
  const platform& hardware;
  const stack& software;
  const model& net;
  const inference_workload& work;
};

/// The workload as the workers of the prefill pool see it. Requires one.
inference_workload prefill_workload(const inference_workload& w);

/// Whether clients see the engine through a server.
inline bool behind_server(const inference_workload& w) {
  return w.front_end && w.load != load_kind::offline && w.load != load_kind::static_batch;
}

/// The stack's settings with the workload's in their place.
engine_settings settings_of(const inference_profile& engine, const inference_workload& w);

/// What one iteration of one replica holds.
struct iteration {
  std::int64_t decodes = 0;           ///< sequences that produce one token each from their cache
  std::int64_t context = 0;           ///< cached tokens over those, with the one each continues from
  std::int64_t prompt_tokens = 0;     ///< prefilled now
  double prompt_pairs = 0;            ///< causal (query, key) pairs of those, one head, chunk prefixes included
  std::int64_t prompts = 0;           ///< prompts worked on
  std::int64_t finished_prompts = 0;  ///< prompts whose first token comes out of this iteration
  std::int64_t swapped_tokens = 0;    ///< cached tokens copied to or from CPU memory before it

  friend auto operator<=>(const iteration&, const iteration&) = default;
};

/// When a request made progress, as iteration indices of its replica.
struct request_progress {
  std::int64_t input = 0, output = 0;
  std::int32_t arrived = 0;      ///< it is sent as this iteration begins
  std::int32_t admitted = 0;     ///< first iteration that worked on it
  std::int32_t first_token = 0;  ///< iteration that ends with its first token
  std::int32_t last_token = 0;
};

/// One replica's whole run in token time: independent of how long iterations take.
struct batching_schedule {
  std::vector<iteration> iterations;
  std::vector<request_progress> requests;
  std::int64_t peak_kv_tokens = 0;      ///< most KV tokens held, in whole blocks
  std::vector<std::int64_t> kv_tokens;  ///< by iteration, the same
};

using request_lengths = std::vector<std::pair<std::int64_t, std::int64_t>>;  ///< input, output

/// What a sequence holds beside its tokens in layers that keep all of them, in such tokens.
struct sequence_cache {
  double states = 0;  ///< of layers that scan, whatever its length
  std::map<std::int64_t, double>
      windowed;  ///< by window: bytes a token, over those of a token in the other layers

  std::int64_t beside(std::int64_t tokens) const;
};

struct schedule_limits {
  engine_settings settings;
  std::int64_t kv_capacity_tokens = 0;
  int kv_block_tokens = 1;
  std::int64_t concurrency = 0;  ///< requests in flight; 0: all are there at the start
  double tokens_per_step = 1;    ///< of a decoding sequence
  int ranks = 1;                 ///< that share the token budget and keep sequences of their own
  sequence_cache sequence;
  std::int64_t prefix_tokens = 512;       ///< of a named block of prompts
  std::int64_t swap_capacity_tokens = 0;  ///< CPU memory for caches of preempted requests
};

/// Steps that decode `tokens` further tokens.
std::int64_t decode_steps(std::int64_t tokens, double tokens_per_step);

/// Runs the scheduler of one replica over requests of the given lengths (one token or more) in token time.
/// [docs/models-and-assumptions.md#inference-scheduler]
/// Throws internal_error when a request does not fit the cache or the token budget alone.
batching_schedule schedule_requests(const request_lengths& lengths, const schedule_limits& limits);

/// A request's way through both pools: workers, their iterations, and dates.
struct pooled_request {
  std::int64_t input = 0, output = 0;
  std::int32_t prefill_worker = -1, prefill_first = -1,
               prefill_last = -1;                                        ///< iterations that worked on its prompt
  std::int32_t decode_worker = -1, decode_first = -1, decode_last = -1;  ///< -1: all its output is the first token
  std::int32_t sent_after = -1;  ///< the request whose end let a client send this one
  double sent_s = 0, prefill_begin_s = 0, prefill_end_s = 0, delivered_s = 0, decode_begin_s = 0, end_s = 0;
};

struct pooled_schedule {
  std::vector<std::vector<iteration>> prefill, decode;                                    ///< by worker
  std::vector<std::vector<double>> prefill_begin_s, decode_begin_s, prefill_s, decode_s;  ///< when, and how long
  std::vector<pooled_request> requests;
  std::int64_t peak_kv_tokens = 0;  ///< of a decode worker
  double makespan_s = 0;
};

/// `count` requests as the workload draws them.
request_lengths draw_lengths(const inference_workload& w, std::int64_t count);

/// All requests of the load; conversations end before they are longer than `longest` tokens (0: whatever they
/// are).
request_list generate_requests(const inference_workload& w, std::int64_t longest);

/// An inference run ready for the engine: one class a distinct lane, one operation an iteration. A lane is a
/// replica, or one of the `pp` micro-batches that a pipeline of `pp` stages works on in turn.
struct inference_run {
  plan work;
  memory_report memory;
  std::vector<batching_schedule> schedules;  ///< by class
  std::optional<pooled_schedule> pools;      ///< in place of `schedules`: prefill workers are the first classes
  std::vector<std::int64_t> lanes;           ///< by class
  front_end_costs front_end;                 ///< zero when the engine is called in process
  double tokens_per_step = 1;                ///< of a decoding sequence
  std::int64_t kv_capacity_tokens = 0;       ///< of one lane
  std::vector<std::string> reasons;          ///< why it cannot run; empty when it can
  std::vector<std::string> notes;            ///< assumptions taken
};
/// `explained` gives every part its facts; they take memory.
inference_run plan_inference(const platform& p, const stack& s, const model& m, const inference_workload& w,
                             bool explained = false);

/// Why this model, layout and stack cannot serve on this platform; empty when they can. The load is not looked at.
std::vector<std::string> serving_problems(const platform& p, const stack& s, const model& m,
                                          const inference_workload& w);

}  // namespace nvlsim
