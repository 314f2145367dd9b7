// Transformer shapes, and what they cost in parameters, FLOPs and bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/units/precision.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// What mixes tokens in a layer. Hybrid models have layers of one kind each: `none` is a layer with only an MLP.
enum class attention_kind { grouped_query, mla, compressed, linear, mamba, none };

/// Multi-head latent attention (DeepSeek). A q_lora_rank of 0 projects queries straight from the hidden state.
struct mla_spec {
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, qk_nope_dim = 0, qk_rope_dim = 0, v_head_dim = 0;
  friend bool operator==(const mla_spec&, const mla_spec&) = default;
};

/// DeepSeek-V4's attention: queries and the output of `o_groups` groups of heads go through low ranks; one vector
/// of `head_dim` is key and value of all heads. It is kept for the last `window` tokens and, pooled by a learned
/// gate, once for every `ratio` tokens, or not at all when that is 0.
struct compressed_spec {
  std::int64_t q_lora_rank = 0, o_lora_rank = 0, o_groups = 0, ratio = 0;
  friend bool operator==(const compressed_spec&, const compressed_spec&) = default;
};

/// Routed experts in the place of the dense MLP.
struct moe_spec {
  std::int64_t experts = 0, top_k = 0, expert_ffn = 0;
  std::int64_t shared_ffn = 0;    ///< width of all shared experts together, 0 when there are none
  std::int64_t latent = 0;        ///< width that routed experts see, behind two projections; 0: the hidden size
  bool balanced_by_bias = false;  ///< training evened their loads by a bias on scores (DeepSeek-V3), not by a loss
  friend bool operator==(const moe_spec&, const moe_spec&) = default;
};

/// State-space (Mamba-2) or linear attention (gated delta net): fixed-size state instead of a KV cache.
struct scan_spec {
  std::int64_t heads = 0, head_dim = 0, state = 0, groups = 0;
  std::int64_t key_heads = 0;  ///< linear attention: heads of queries and keys, of width `state`
  std::int64_t conv_kernel = 0;
  std::int64_t chunk = 128;  ///< tokens that training kernels scan at once
  friend bool operator==(const scan_spec&, const scan_spec&) = default;
};

/// What queries and keys are normalised over: nothing, a head (Qwen3), or all heads together, so that ranks of TP
/// add up their squares (MiniMax-M2).
enum class qk_norm_kind { none, per_head, joint };

/// One decoder layer: a token mixer, then a dense MLP (`ffn_hidden` > 0), routed experts, or neither.
struct layer_spec {
  attention_kind attention = attention_kind::grouped_query;
  std::int64_t heads = 0, kv_heads = 0;  ///< 0 where tokens are mixed by a scan or not at all
  std::int64_t head_dim = 0;             ///< of queries and keys
  std::int64_t window = 0;       ///< keys a query sees at most, 0 is all (sliding-window or chunked attention)
  std::int64_t sparse_keys = 0;  ///< keys a query attends after an indexer chose them, 0 is all (DeepSeek)
  std::int64_t index_heads = 0, index_dim = 0;  ///< of the indexer; 0 where a layer takes another one's choice
  mla_spec mla{};
  compressed_spec compressed{};
  scan_spec scan{};
  std::int64_t ffn_hidden = 0;
  bool gated_mlp = true;  ///< of the dense MLP and of experts
  moe_spec moe{};
  qk_norm_kind qk_norm = qk_norm_kind::none;
  bool attention_gate = false;  ///< the attention output is gated by a projection as wide as the queries (Qwen3.5)
  bool biased_clamped_activation = false;  ///< experts with biases and clamped, interleaved SwiGLU (gpt_oss)

  bool routed() const { return moe.experts > 0; }
  friend bool operator==(const layer_spec&, const layer_spec&) = default;
};

/// How the weights of a published checkpoint are stored, as far as its files say. What has no counterpart here is
/// left empty.
struct checkpoint_spec {
  std::string source;     ///< "hf_quant_config.json", "quantization_config", or empty when nothing is said
  std::string algorithm;  ///< as published: "NVFP4", "fp8"
  std::optional<precision> weights, attention_weights, expert_weights;  ///< the latter two where they differ
  std::optional<precision> kv_cache;
  friend bool operator==(const checkpoint_spec&, const checkpoint_spec&) = default;
};

struct model {
  std::string name;
  std::string model_type;  ///< Hugging Face's, "llama"; "gpt" for the native form
  std::int64_t hidden = 0, vocab = 0;
  std::int64_t max_positions = 0;  ///< longest sequence its authors state, 0 when they state none
  bool tied_embeddings = false;
  std::int64_t residual_streams =
      1;  ///< copies of the hidden state beside each other (hyper-connections of DeepSeek-V4)
  std::vector<layer_spec> layers;
  std::int64_t mtp_layers = 0;        ///< multi-token-prediction modules after `layers`
  std::vector<layer_spec> mtp_block;  ///< decoder layers of each of them: like the last of `layers`, unless hybrid
  checkpoint_spec checkpoint{};
  friend bool operator==(const model&, const model&) = default;
};

/// Whether some layer routes its tokens to experts.
bool has_routed_experts(const model& m);

/// Parameters of one layer (attention, MLP or all its experts and router, and norms) and of the whole model
/// (embeddings and final norm included). Weights only: biases, learned positions and scalars a head, 0.02 % of
/// GPT-3 175B, are left out as in the published counts, and so is multi-token prediction.
std::int64_t layer_parameters(const model& m, const layer_spec& l);
std::int64_t parameters(const model& m);
/// Those of the routed experts of one layer.
std::int64_t expert_parameters(const model& m, const layer_spec& l);
/// Those one token meets: all but the routed experts it is not sent to.
std::int64_t active_parameters(const model& m);
/// Those of the multi-token-prediction modules, which `parameters` leaves out.
std::int64_t mtp_parameters(const model& m);

/// Parameters by part; `mlp` has shared experts, `output` is zero when the output layer shares the embedding's
/// weights.
struct parameter_parts {
  std::int64_t embedding = 0, attention = 0, mlp = 0, experts = 0, router = 0, norms = 0, output = 0;
};
parameter_parts parameters_by_part(const model& m);

/// How Megatron-Bridge counts: before its release 26.06 a window was ignored, and SwiGLU with a clamp or another
/// activation (GPT-OSS) taken for an MLP of two matrices.
enum class flop_rules { since_26_06, before_26_06 };

/// FLOPs of training one token, forward and backward (3 x forward), 2 per multiply-add, as Megatron-Bridge counts
/// them: attention over half of the s x s matrix (`causal`) or all of it, the experts one token meets, logits and
/// multi-token prediction included; embedding, router, norms, softmax, optimizer and recompute left out.
/// [docs/models-and-assumptions.md#flops]
double training_flops_per_token(const model& m, std::int64_t sequence, bool causal,
                                flop_rules rules = flop_rules::since_26_06);

/// Bytes of KV cache one token takes over all layers, on all ranks together, while every window has room.
double kv_bytes_per_token(const model& m, precision kv);

/// Bytes of KV cache of a sequence of that many tokens: a window keeps no more than its own.
double kv_bytes_per_sequence(const model& m, precision kv, std::int64_t tokens);

/// Bytes of the state of a layer's scan (FP32) and of its convolution (BF16), whatever the length of the sequence.
double state_bytes(const layer_spec& l);
/// Of all layers.
double state_bytes_per_sequence(const model& m);

/// Bytes of all weights when every one of them is stored in `p`.
double weight_bytes(const model& m, precision p);

}  // namespace nvlsim
