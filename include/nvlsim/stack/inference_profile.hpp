// What a serving engine adds to its kernels, how it schedules and what it keeps of the memory.
// [docs/models-and-assumptions.md#inference]
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "nvlsim/stack/engine_settings.hpp"
#include "nvlsim/units/precision.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// What the KV cache takes its share of.
enum class kv_memory_rule {
  of_rest,  ///< the memory that weights and reserve leave
  of_all    ///< all memory, weights and reserve included
};

/// Host and kernel terms of one GPU architecture. Factors are relative to the stack's kernel profile.
struct engine_costs {
  seconds step_host;           ///< an iteration
  seconds rank_host;           ///< of it, each doubling of the ranks that are told what to run
  seconds sequence_host;       ///< a running sequence and iteration
  seconds request_host;        ///< a request admitted
  seconds layer_time;          ///< small kernels of a layer, beyond its GEMMs and attention
  seconds qk_norm_time;        ///< norms of queries and keys in a layer that has them
  seconds prefill_layer_host;  ///< a layer of an iteration that runs without a CUDA graph: with prompts, or too
                               ///< many decodes
  seconds expert_layer_time;   ///< routing, permutation and grouped launches of a layer with experts
  seconds exchange_time;       ///< dispatch and combine latency of such a layer under attention data parallelism
  seconds scan_layer_time;     ///< recurrence kernels of a layer that scans: linear attention, Mamba
  seconds indexer_layer_time;  ///< choosing keys in a sparse-attention layer
  double elementwise_vectors = 12;   ///< hidden vectors moved a token and layer
  double launch_factor = 1;          ///< of GEMM and decode-attention launches
  double stream_factor = 1;          ///< of the rate at which GEMMs read weights
  double decode_factor = 1;          ///< of the rate of decode attention
  double decode_fp8_factor = 1;      ///< of it where the cache has 8 bits an element
  double attention_factor = 1;       ///< of the rate of prefill attention
  double reduce_latency_factor = 1;  ///< of the start of a fused all-reduce
  double reduce_rate_factor = 1;     ///< of its bandwidth
  double expert_stream_factor = 1;   ///< of the rate at which expert weights are read
  double expert_skew = 0;  ///< how uneven experts' popularity is that a loss evened in training; 0: all alike
  double biased_expert_skew = 0;              ///< the same where a bias on scores evened it
  double expert_imbalance = 1;                ///< tokens of the busiest expert-parallel rank over the mean
  std::map<precision, double> gemm_factor;    ///< tensor rate over that of the kernel tables; 1 if absent
  std::map<precision, double> expert_factor;  ///< the same of experts' GEMMs
};

/// What a server in front of the engine adds, as its clients see it; absent when the engine is called in process.
struct front_end_costs {
  seconds sequence_host;  ///< a reply to a client
  seconds request_host;
  seconds first_token_delay;          ///< before the client has its first token
  double first_token_iterations = 0;  ///< iterations the first token is held back
  seconds prompt_token_delay;         ///< of `first_token_delay`'s kind, a token of the prompt: it is made of text

  /// From the client to the engine, of a request by itself.
  seconds way_in(double prompt_tokens) const { return first_token_delay + prompt_token_delay * prompt_tokens; }
  /// How long the first of a request's tokens waits, of so many gaps of that length: no longer than the request
  /// lasts.
  double held_back_s(double gaps, double gap_s) const { return std::min(first_token_iterations, gaps) * gap_s; }
};

struct inference_profile : engine_costs {
  std::map<std::string, engine_costs> gpus;  ///< by GPU or architecture; what is not there is as above
  std::map<std::string, double>
      sustained_factor;              ///< by GPU: tensor rate of a long run over a short benchmark's; 1 if absent
  double release_factor = 1;         ///< of this release's step, layer and launch times
  double expert_release_factor = 1;  ///< of its `expert_layer_time`, beside `release_factor`
  front_end_costs front_end;
  engine_settings settings;
  kv_memory_rule kv_rule = kv_memory_rule::of_rest;
  bytes reserve;  ///< of GPU memory
  int kv_block_tokens = 32;
  /// Nine of ten published rows lie within a factor of e^this of the simulation; zero when not known.
  struct {
    double tpot = 0, ttft = 0, throughput = 0;
  } band;

  /// Costs on a GPU: its own entry, else its architecture's, else the common one; those of the release applied.
  engine_costs costs(const std::string& gpu, const std::string& architecture) const;
};

}  // namespace nvlsim
