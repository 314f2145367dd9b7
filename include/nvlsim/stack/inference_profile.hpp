// Serving engine parameters: host and kernel overheads, scheduler settings and memory reserves.
// [docs/models-and-assumptions.md#inference]
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/stack/engine_settings.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/precision.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// What the KV cache takes its share of.
enum class kv_memory_rule {
  of_rest,  ///< what weights, reserves and the peak of the profiling pass leave (TensorRT-LLM)
  of_all,   ///< all memory, which weights, reserves and the peak of the profiling pass share with it (vLLM)
  of_free   ///< what is free before weights are loaded, which weights share with it (SGLang)
};

/// How an 8-bit cache stores the latent vectors of layers with sparse or compressed attention.
enum class latent_format {
  plain,  ///< every element in 8 bits
  scaled  ///< 8 bits with scales, and the rotary part in 16 bits (`fp8_ds_mla`)
};

/// Which kernel attends to the keys that an indexer chose, for prompts beside an 8-bit cache on Blackwell.
enum class sparse_kernel {
  padded,       ///< FlashMLA's, for whole blocks of 128 heads
  small_blocks  ///< TensorRT-LLM's, for 16 heads at a time
};

/// Host and kernel overheads on one GPU architecture. Factors are relative to the stack's kernel profile.
struct engine_costs {
  constant<seconds> step_host;  ///< per iteration
  constant<seconds> rank_host;  ///< added to `step_host` for each doubling of the ranks that receive the schedule
  constant<seconds> sequence_host;       ///< per running sequence and iteration
  constant<seconds> request_host;        ///< per admitted request
  constant<seconds> layer_time;          ///< per layer: small kernels other than GEMMs and attention
  constant<seconds> qk_norm_time;        ///< per layer with query and key norms
  constant<seconds> prefill_layer_host;  ///< per layer, in iterations without a CUDA graph: those with prompts or
                                         ///< too many decodes
  constant<seconds> eager_layer_host;    ///< per layer of every iteration, if there are no CUDA graphs at all
  constant<seconds> expert_layer_time;   ///< per layer with experts: routing, permutation and grouped launches
  constant<seconds> exchange_time;       ///< per layer with experts, under attention data parallelism: latency of
                                         ///< dispatch and combine
  constant<seconds> scan_layer_time;     ///< per linear-attention or Mamba layer: recurrence kernels
  constant<seconds> indexer_layer_time;  ///< per sparse-attention layer: selecting keys
  constant<double> elementwise_vectors = 12;   ///< hidden vectors moved per token and layer
  constant<double> launch_factor = 1;          ///< multiplies launches of GEMMs and decode attention
  constant<double> stream_factor = 1;          ///< multiplies the rate at which GEMMs read weights
  constant<double> decode_factor = 1;          ///< multiplies the rate of decode attention
  constant<double> attention_factor = 1;       ///< multiplies the rate of prefill attention
  constant<double> reduce_latency_factor = 1;  ///< multiplies the latency of a fused all-reduce
  constant<double> reduce_rate_factor = 1;     ///< multiplies the bandwidth of a fused all-reduce
  constant<double> expert_stream_factor = 1;   ///< multiplies the rate at which expert weights are read
  constant<double> expert_skew =
      0;  ///< variance of expert popularity over its mean squared, if training balanced it with a loss; 0: uniform
  constant<double> biased_expert_skew = 0;  ///< the same if training balanced it with a bias on scores
  std::map<precision, constant<double>>
      gemm_factor;  ///< tensor rate in the engine over that of the kernel tables; 1 if absent
  std::map<precision, constant<double>> expert_factor;  ///< the same for GEMMs of experts
  friend bool operator==(const engine_costs&, const engine_costs&) = default;
};

/// Time that an API server adds, as its clients see it. Not used when the engine is called in process.
struct front_end_costs {
  constant<seconds> sequence_host;  ///< per reply to a client
  constant<seconds> request_host;
  constant<seconds> first_token_delay;          ///< added to the time to first token
  constant<double> first_token_iterations = 0;  ///< iterations by which the first token is delayed
  constant<seconds> prompt_token_delay;  ///< added to `first_token_delay` per prompt token, for tokenization

  /// Delay of a single request from the client to the engine.
  seconds way_in(double prompt_tokens) const { return first_token_delay + prompt_token_delay * prompt_tokens; }
  /// How long the first token is held back in a request with `gaps` gaps of `gap_s` each; at most the whole
  /// request.
  double held_back_s(double gaps, double gap_s) const {
    return std::min(first_token_iterations.read(), gaps) * gap_s;
  }
  friend bool operator==(const front_end_costs&, const front_end_costs&) = default;
};

/// Nine of ten published rows lie within a factor of e^this of the simulation. Zero: not known.
struct error_widths {
  double tpot = 0, ttft = 0, throughput = 0;
  bool known() const { return tpot > 0 || ttft > 0 || throughput > 0; }
  friend bool operator==(const error_widths&, const error_widths&) = default;
};

/// Errors of the engine's fit, finer than its band. [docs/stack-format.md#inference]
struct serving_calibration {
  std::map<std::string, error_widths> kinds;  ///< of "dense" models, of "experts", of "pools"
  error_widths elsewhere;                     ///< of systems that were left out of a fit
  /// Weight formats that the fit had rows of, by GPU. Absent: not known.
  std::optional<std::map<std::string, std::vector<precision>>> measured;
  friend bool operator==(const serving_calibration&, const serving_calibration&) = default;
};

/// What an engine does on some GPUs or with some models if nobody says otherwise.
struct usual_settings {
  std::string name;
  std::string gpu;          ///< name or architecture; empty: any
  std::string model_type;   ///< empty: any
  bool of_replica = false;  ///< the batch limit counts all ranks of attention data parallelism
  engine_overrides settings;
  friend bool operator==(const usual_settings&, const usual_settings&) = default;
};

struct inference_profile : engine_costs {
  std::map<std::string, engine_costs> gpus;  ///< by GPU or architecture; others use the common costs
  std::map<std::string, constant<double>>
      sustained_factor;  ///< by GPU: tensor rate in a long run over that in a short benchmark; 1 if absent
  constant<double> release_factor = 1;         ///< multiplies step, layer and launch times of this release
  constant<double> expert_release_factor = 1;  ///< multiplies `expert_layer_time` in addition to `release_factor`
  front_end_costs front_end;
  engine_settings settings;
  std::vector<usual_settings> usual;  ///< later ones go before earlier ones
  kv_memory_rule kv_rule = kv_memory_rule::of_rest;
  constant<bytes> reserve;              ///< GPU memory of the process: CUDA context, kernels, libraries
  constant<bytes> group_reserve = {};   ///< the same of collective libraries, if a replica has several ranks
  constant<bytes> graph_reserve = {};   ///< per batch size for which a CUDA graph is captured, and layer
  constant<double> sampling_bytes = 4;  ///< at the peak of sampling, per sequence and entry of the vocabulary
  latent_format latents = latent_format::plain;
  sparse_kernel sparse_prompts = sparse_kernel::padded;
  /// Pools of their own for layers that do not keep every token. Zero: one pool serves all layers.
  constant<double> window_pool_share = 0;  ///< tokens in the pool of windowed layers, over those of the others
  constant<double> state_pool_share = 0;   ///< memory for states of scans, over that for tokens
  bool paged_states = false;  ///< states of scans take whole pages of the tokens' pool; a page holds at least one
  constant<double> host_copy_share = 1;  ///< of the rate between GPU and CPU that copies of KV blocks reach
  error_widths band;
  serving_calibration calibration;

  /// Costs on a GPU: its own entry, else that of its architecture, else the common one, with the release factors
  /// applied.
  engine_costs costs(const std::string& gpu, const std::string& architecture) const;
  friend bool operator==(const inference_profile&, const inference_profile&) = default;
};

}  // namespace nvlsim
