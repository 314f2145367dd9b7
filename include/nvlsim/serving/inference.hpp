// Serving with in-flight batching: workloads, iterations and limits of workers.
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
  least_loaded,  ///< the fewest unfinished requests; prompts wait at the router until a worker has room
  prefix_aware   ///< the fewest tokens to compute and hold, excluding cached prefixes
};

/// The scenarios of MLPerf Inference that servers of language models run.
enum class mlperf_scenario {
  offline,     ///< all samples at once
  server,      ///< Poisson arrivals under limits on TTFT and TPOT
  interactive  ///< the same under tighter limits
};
/// A run that is measured by MLPerf's rules. [docs/serving.md#mlperf]
struct mlperf_rules {
  mlperf_scenario scenario = mlperf_scenario::offline;
  std::string benchmark;  ///< one of `mlperf_benchmarks`
};

/// What guesses the tokens that a step checks.
enum class draft_source {
  mtp,     ///< the model's prediction module
  eagle3,  ///< one dense layer on hidden states of three layers, with an LM head of its own
  model,   ///< a smaller model
  ngram    ///< the prompt and the output so far; takes no GPU time
};

/// Speculative decoding: a step of a sequence checks `draft_tokens` guesses beside its own token, and gives
/// `tokens_per_step` on average. [docs/models-and-assumptions.md#speculative-decoding]
struct speculation {
  int draft_tokens = 0;
  double tokens_per_step = 1;
  draft_source source = draft_source::mtp;
  bool parallel = false;                    ///< one pass guesses all tokens
  std::string model_name = {};              ///< of a draft model, as in the scenario
  std::shared_ptr<const model> draft = {};  ///< a draft model, or the layer of EAGLE-3

  bool by_module() const { return draft_tokens > 0 && source == draft_source::mtp; }
};

/// LoRA adapters on the projections of attention and of dense MLPs, in 16 bits.
struct adapter_settings {
  std::int64_t rank = 0;
  std::int64_t count = 0;  ///< in GPU memory; requests use them alike
};
/// Mean tokens per step if each draft token is accepted with probability `acceptance`, given that all before it
/// were.
double expected_tokens_per_step(int draft_tokens, double acceptance);

/// A pool of equal workers, with all that the scenario says of them.
struct pool_layout : rank_counts {
  engine_overrides engine = {};
  engine_overrides usual = {};  ///< what the engine does on this GPU and with this model if nobody says otherwise
};

/// The ranks and the settings of `engine` are those of the engines that decode.
struct inference_workload : rank_counts {
  precision weights = precision::bf16, kv_cache = precision::bf16;
  precision state_cache = precision::fp32;                     ///< of the states of scans
  std::optional<precision> attention_weights, expert_weights;  ///< if they differ from `weights`
  engine_overrides engine;
  engine_overrides usual;  ///< what the engine does on this GPU and with this model if nobody says otherwise
  adapter_settings adapters;
  // load
  load_kind load = load_kind::offline;
  std::int64_t requests = 0;     ///< over all replicas
  std::int64_t concurrency = 0;  ///< over all replicas, for a closed loop
  token_lengths input, output;
  arrival_settings arrivals;                       ///< for an open loop, or a trace without arrival times
  std::string trace_file;                          ///< for a trace: its path as in the scenario
  std::optional<double> trace_seconds_per_unit;    ///< for a trace: of its times, if the load says so
  std::optional<std::int64_t> trace_block_tokens;  ///< for a trace: of its prompt blocks, if the load says so
  std::shared_ptr<const request_trace> replay;     ///< for a trace: its content
  double rate_scale = 1;                           ///< for a trace: arrival rate over that of the file
  double tick_s = 0;                               ///< for a trace: arrivals are spread over ticks of this length
  std::optional<session_settings> sessions;
  std::optional<image_settings> images;
  bool front_end =
      true;  ///< requests of loads with clients pass through an API server; false: the engine is called in process
  measured_part measured;
  /// The run lasts at least ten minutes and all requests count; `requests` is then the fewest that are sent.
  std::optional<mlperf_rules> mlperf;
  service_objective objective;
  router_policy router = router_policy::round_robin;
  std::optional<router_policy> pool_router;  ///< of the workers of pools, if the layout says
  /// Prompts are worked on by workers of their own.
  /// [docs/models-and-assumptions.md#disaggregation]
  std::optional<pool_layout> prefill_pool;
  bool prompts_cached = false;    ///< decode workers only: requests arrive with the KV cache of their prompt
  std::vector<cache_tier> tiers;  ///< of workers that prefill, the fastest first
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

/// Whether requests pass through an API server.
inline bool behind_server(const inference_workload& w) {
  return w.front_end && w.load != load_kind::offline && w.load != load_kind::static_batch;
}

/// Fills in the usual settings of the engines of `w`.
void find_usual_settings(const platform& p, const stack& s, const model& m, inference_workload& w);

/// The stack's settings, the usual ones on this GPU and with this model, and the workload's overrides.
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
  double tokens_per_step = 1;  ///< mean tokens per decoding sequence and step
  int ranks = 1;               ///< ranks with sequences of their own that share the token budget
  sequence_cache sequence;
  std::int64_t prefix_tokens = 512;       ///< tokens per block of a shared prefix
  std::int64_t swap_capacity_tokens = 0;  ///< CPU memory for the KV caches of preempted requests
};

/// What a run asked of a limit.
struct limit_use {
  std::int64_t asked = 0;  ///< the most that was let through
  bool refused = false;    ///< something was not

  /// Whether `x` is within `limit`; remembers that it was asked.
  bool lets(std::int64_t x, std::int64_t limit) {
    if (x > limit) refused = true;
    else if (x > asked) asked = x;
    return x <= limit;
  }
  /// Whether the same run follows from the limit `other` in place of `own`: whatever was asked gets the same
  /// answer.
  bool alike(std::int64_t own, std::int64_t other) const { return own == other || (!refused && asked <= other); }
  void add(const limit_use& o) {
    asked = asked > o.asked ? asked : o.asked;
    refused |= o.refused;
  }
};
/// The same of all limits of a worker that a batch depends on.
struct limits_use {
  limit_use sequences, tokens, rank_tokens, cache_tokens;

  void add(const limits_use& o);
};
/// The limits that `limits_use` is of, as a worker reads them.
struct batch_limits {
  std::int64_t sequences = 0, tokens = 0, rank_tokens = 0, cache_tokens = 0;

  explicit batch_limits(const schedule_limits& l);
  /// Whether a run that asked for `used` under these limits goes alike under others.
  bool alike(const limits_use& used, const batch_limits& others) const;
};

/// Number of steps that decode `tokens` more tokens.
std::int64_t decode_steps(std::int64_t tokens, double tokens_per_step);

/// Draws the lengths of `count` requests.
request_lengths sample_lengths(const inference_workload& w, std::int64_t count);

/// All requests of the load. Conversations end before they exceed `longest` tokens (0: no limit).
request_list generate_requests(const inference_workload& w, std::int64_t longest);

/// Why this model, layout and stack cannot serve on this platform; empty when they can. Ignores the load.
std::vector<std::string> serving_problems(const platform& p, const stack& s, const model& m,
                                          const inference_workload& w);

}  // namespace nvlsim
