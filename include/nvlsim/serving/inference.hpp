// Serving with in-flight batching: workloads, schedules and plans.
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
  offline,       ///< all requests arrive at the start
  closed_loop,   ///< `concurrency` clients; each sends its next request when the last one ends
  static_batch,  ///< all requests start in the same iteration
  open_loop,     ///< requests arrive by a random process, independently of the server
  trace          ///< arrivals from a file
};
/// How the router picks a replica for a request.
enum class router_policy {
  round_robin,
  least_loaded,  ///< the fewest unfinished requests
  prefix_aware   ///< the fewest tokens to compute and hold, excluding cached prefixes
};

/// Speculative decoding: a step of a sequence checks `draft_tokens` guesses of the model's prediction module
/// beside its own token, and gives `tokens_per_step` on average.
/// [docs/models-and-assumptions.md#speculative-decoding]
struct speculation {
  int draft_tokens = 0;
  double tokens_per_step = 1;
};
/// Mean tokens per step if each draft token is accepted with probability `acceptance`, given that all before it
/// were.
double expected_tokens_per_step(int draft_tokens, double acceptance);

/// A pool of equal workers, with all that the scenario says of them.
struct pool_layout : rank_counts {
  engine_overrides engine;
};

/// The ranks and the settings of `engine` are those of the engines that decode.
struct inference_workload : rank_counts {
  precision weights = precision::bf16, kv_cache = precision::bf16;
  std::optional<precision> attention_weights, expert_weights;  ///< if they differ from `weights`
  engine_overrides engine;
  // load
  load_kind load = load_kind::offline;
  std::int64_t requests = 0;     ///< over all replicas
  std::int64_t concurrency = 0;  ///< over all replicas, for a closed loop
  token_lengths input, output;
  arrival_settings arrivals;                    ///< for an open loop, or a trace without arrival times
  std::string trace_file;                       ///< for a trace: its path as in the scenario
  std::shared_ptr<const request_trace> replay;  ///< for a trace: its content
  double rate_scale = 1;                        ///< for a trace: arrival rate over that of the file
  double tick_s = 0;                            ///< for a trace: arrivals are spread over ticks of this length
  std::optional<session_settings> sessions;
  std::optional<image_settings> images;
  bool front_end =
      true;  ///< requests of loads with clients pass through an API server; false: the engine is called in process
  measured_part measured;
  service_objective objective;
  router_policy router = router_policy::round_robin;
  /// Prompts are worked on by workers of their own.
  /// [docs/models-and-assumptions.md#disaggregation]
  std::optional<pool_layout> prefill_pool;
  bool prompts_cached = false;  ///< decode workers only: requests arrive with the KV cache of their prompt
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
  const inference_workload& workload;
};

/// The workload as the workers of the prefill pool see it. Requires one.
inference_workload prefill_workload(const inference_workload& w);

/// Whether requests pass through an API server.
inline bool behind_server(const inference_workload& w) {
  return w.front_end && w.load != load_kind::offline && w.load != load_kind::static_batch;
}

/// The stack's settings with the workload's overrides applied.
engine_settings settings_of(const inference_profile& engine, const inference_workload& w);

/// Content of one iteration of one replica.
struct iteration {
  std::int64_t decodes = 0;        ///< decoding sequences, one step each
  std::int64_t context = 0;        ///< cached tokens of the decoding sequences, each including its latest token
  std::int64_t prompt_tokens = 0;  ///< prompt tokens prefilled in this iteration
  double prompt_pairs = 0;         ///< their causal (query, key) pairs per head, including keys of earlier chunks
  std::int64_t prompts = 0;        ///< prompts processed
  std::int64_t finished_prompts = 0;  ///< prompts that produce their first token
  std::int64_t swapped_tokens = 0;    ///< cached tokens copied to or from CPU memory before the iteration

  friend auto operator<=>(const iteration&, const iteration&) = default;
};

/// Progress of a request, as iteration indices of its replica.
struct request_progress {
  std::int64_t input = 0, output = 0;
  std::int32_t arrived = 0;      ///< iteration that begins when it is sent
  std::int32_t admitted = 0;     ///< first iteration that processes it
  std::int32_t first_token = 0;  ///< iteration that produces its first token
  std::int32_t last_token = 0;
};

/// Schedule of one replica in token time, independent of iteration times.
struct batching_schedule {
  std::vector<iteration> iterations;
  std::vector<request_progress> requests;
  std::int64_t peak_kv_tokens = 0;      ///< peak of allocated KV tokens, in whole blocks
  std::vector<std::int64_t> kv_tokens;  ///< allocated KV tokens by iteration
};

using request_lengths = std::vector<std::pair<std::int64_t, std::int64_t>>;  ///< input, output

/// Cache of a sequence in layers that do not keep every token, expressed in tokens of the layers that do.
struct sequence_cache {
  double states = 0;  ///< states of scan layers, independent of length
  std::map<std::int64_t, double>
      windowed;  ///< by window length: bytes per token over those of a token in full-attention layers

  std::int64_t beside(std::int64_t tokens) const;
};

struct schedule_limits {
  engine_settings settings;
  std::int64_t kv_capacity_tokens = 0;
  int kv_block_tokens = 1;
  std::int64_t concurrency = 0;  ///< most requests in flight; 0: all arrive at the start
  double tokens_per_step = 1;    ///< mean tokens per decoding sequence and step
  int ranks = 1;                 ///< ranks with sequences of their own that share the token budget
  sequence_cache sequence;
  std::int64_t prefix_tokens = 512;       ///< tokens per block of a shared prefix
  std::int64_t swap_capacity_tokens = 0;  ///< CPU memory for the KV caches of preempted requests
};

/// Number of steps that decode `tokens` more tokens.
std::int64_t decode_steps(std::int64_t tokens, double tokens_per_step);

/// Schedules requests of the given lengths (at least one token each) on one replica in token time.
/// [docs/models-and-assumptions.md#inference-scheduler] Throws internal_error if a single request exceeds the
/// cache or the token budget.
batching_schedule schedule_requests(const request_lengths& lengths, const schedule_limits& limits);

/// Path of a request through both pools: workers, iterations and times.
struct pooled_request {
  std::int64_t input = 0, output = 0;
  std::int32_t prefill_worker = -1, prefill_first = -1,
               prefill_last = -1;  ///< first and last iteration that process its prompt
  std::int32_t decode_worker = -1, decode_first = -1,
               decode_last = -1;  ///< -1: its only output token is the first token
  std::int32_t sent_after = -1;   ///< request after whose end the client sends this one
  double sent_s = 0, prefill_begin_s = 0, prefill_end_s = 0, delivered_s = 0, decode_begin_s = 0, end_s = 0;
};

struct pooled_schedule {
  std::vector<std::vector<iteration>> prefill, decode;                                    ///< by worker
  std::vector<std::vector<double>> prefill_begin_s, decode_begin_s, prefill_s, decode_s;  ///< start and duration
  std::vector<pooled_request> requests;
  std::int64_t peak_kv_tokens = 0;  ///< of the fullest decode worker
  double makespan_s = 0;
};

/// Draws the lengths of `count` requests.
request_lengths draw_lengths(const inference_workload& w, std::int64_t count);

/// All requests of the load. Conversations end before they exceed `longest` tokens (0: no limit).
request_list generate_requests(const inference_workload& w, std::int64_t longest);

/// Plan of an inference run: one class per distinct worker, one operation per iteration. A worker is a replica, or
/// one of the `pp` micro-batches in flight in a pipeline of `pp` stages.
struct inference_run {
  plan planned;
  memory_report memory;
  std::vector<batching_schedule> schedules;  ///< by class
  std::optional<pooled_schedule> pools;      ///< replaces `schedules`; prefill workers are the first classes
  std::vector<std::int64_t> workers;         ///< by class
  front_end_costs front_end;                 ///< zero if the engine is called in process
  double tokens_per_step = 1;                ///< mean tokens per decoding sequence and step
  std::int64_t kv_capacity_tokens = 0;       ///< per worker
  std::vector<std::string> reasons;          ///< why it cannot run; empty when it can
  std::vector<std::string> notes;            ///< assumptions made
};
/// `explained` adds facts to every part, which takes memory.
inference_run plan_inference(const platform& p, const stack& s, const model& m, const inference_workload& w,
                             bool explained = false);

/// Why this model, layout and stack cannot serve on this platform; empty when they can. Ignores the load.
std::vector<std::string> serving_problems(const platform& p, const stack& s, const model& m,
                                          const inference_workload& w);

}  // namespace nvlsim
