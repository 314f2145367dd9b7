// Offline inference with in-flight batching: which tokens each iteration holds, and how long it takes.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/memory.hpp"
#include "nvlsim/model.hpp"
#include "nvlsim/plan.hpp"
#include "nvlsim/platform.hpp"
#include "nvlsim/precision.hpp"
#include "nvlsim/stack.hpp"

namespace nvlsim {

/// Lengths of prompts or outputs: uniform in [mean (1 - spread), mean (1 + spread)], rounded, at least one.
struct token_lengths {
  double mean = 0;
  double spread = 0;
};

struct inference_workload {
  precision weights = precision::bf16, kv_cache = precision::bf16;
  // engine limits
  std::int64_t max_num_tokens = 8192;  ///< tokens of one iteration, prompts and decodes together
  std::int64_t max_batch_size = 2048;  ///< running sequences
  bool chunked_prefill = true;         ///< a prompt may be split over iterations
  // load: all requests at once
  std::int64_t requests = 0;  ///< over all replicas
  token_lengths input, output;
  // layout
  int tp = 1;
  int replicas = 1;
  std::uint64_t seed = 1;
};

/// What one iteration of one replica holds.
struct iteration {
  std::int64_t decodes = 0;           ///< sequences that produce one token each from their cache
  std::int64_t context = 0;           ///< cached tokens over those, with the one each continues from
  std::int64_t prompt_tokens = 0;     ///< prefilled now
  double prompt_pairs = 0;            ///< causal (query, key) pairs of those, one head, chunk prefixes included
  std::int64_t prompts = 0;           ///< prompts worked on
  std::int64_t finished_prompts = 0;  ///< prompts whose first token comes out of this iteration

  friend auto operator<=>(const iteration&, const iteration&) = default;
};

/// When a request made progress, as iteration indices of its replica.
struct request_progress {
  std::int64_t input = 0, output = 0;
  std::int32_t admitted = 0;     ///< first iteration that worked on it
  std::int32_t first_token = 0;  ///< iteration that ends with its first token
  std::int32_t last_token = 0;
};

/// One replica's whole run in token time: independent of how long iterations take.
struct batching_schedule {
  std::vector<iteration> iterations;
  std::vector<request_progress> requests;
  std::int64_t peak_kv_tokens = 0;  ///< most KV tokens held, in whole blocks
};

/// Runs the scheduler of one replica over requests of the given lengths (one token or more): running sequences
/// decode first, then waiting prompts enter in order while token budget, batch limit and KV capacity (the whole
/// output is reserved on admission) allow. Throws internal_error when a request does not fit `kv_capacity_tokens`
/// alone or, if prompts are not chunked, its prompt exceeds `max_num_tokens`.
batching_schedule schedule_offline(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths,
                                   std::int64_t max_num_tokens, std::int64_t max_batch_size, bool chunked_prefill,
                                   std::int64_t kv_capacity_tokens, int kv_block_tokens);

/// An offline inference run ready for the engine: one class a distinct replica, one operation an iteration.
struct inference_run {
  plan work;
  memory_report memory;
  std::vector<batching_schedule> schedules;  ///< by class
  std::vector<std::int64_t> replicas;        ///< by class
  std::int64_t kv_capacity_tokens = 0;       ///< of one replica
  std::vector<std::string> reasons;          ///< why it cannot run; empty when it can
  std::vector<std::string> notes;            ///< assumptions taken
};
inference_run plan_inference(const platform& p, const stack& s, const model& m, const inference_workload& w);

}  // namespace nvlsim
