// Transformer shapes, and what they cost in parameters, FLOPs and bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/precision.hpp"
#include "nvlsim/units.hpp"

namespace nvlsim {

/// What mixes tokens in a layer. Hybrid models have layers of one kind each: `none` is a layer with only an MLP.
enum class attention_kind { grouped_query, mla, linear, mamba, none };

/// Multi-head latent attention (DeepSeek). A q_lora_rank of 0 projects queries straight from the hidden state.
struct mla_spec {
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, qk_nope_dim = 0, qk_rope_dim = 0, v_head_dim = 0;
  friend bool operator==(const mla_spec&, const mla_spec&) = default;
};

/// Routed experts in the place of the dense MLP.
struct moe_spec {
  std::int64_t experts = 0, top_k = 0, expert_ffn = 0;
  std::int64_t shared_ffn = 0;  ///< width of all shared experts together, 0 when there are none
  friend bool operator==(const moe_spec&, const moe_spec&) = default;
};

/// State-space (Mamba-2) or linear attention (gated delta net): fixed-size state instead of a KV cache.
struct scan_spec {
  std::int64_t heads = 0, head_dim = 0, state = 0, groups = 0;
  std::int64_t key_heads = 0;   ///< linear attention: heads of queries and keys, of width `state`
  std::int64_t conv_kernel = 0;
  friend bool operator==(const scan_spec&, const scan_spec&) = default;
};

/// One decoder layer: a token mixer, then a dense MLP (`ffn_hidden` > 0), routed experts, or neither.
struct layer_spec {
  attention_kind attention = attention_kind::grouped_query;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t window = 0;       ///< keys a query sees at most, 0 is all (sliding-window or chunked attention)
  std::int64_t sparse_keys = 0;  ///< keys a query attends after an indexer chose them (DeepSeek sparse attention), 0 is all
  mla_spec mla;
  scan_spec scan;
  std::int64_t ffn_hidden = 0;
  bool gated_mlp = true;         ///< of the dense MLP and of experts
  moe_spec moe;
  bool qk_norm = false;          ///< queries and keys are normalised a head (Qwen3)
  bool attention_gate = false;   ///< the attention output is gated by a projection as wide as the queries (Qwen3.5)
  bool biased_clamped_activation = false;  ///< experts with biases and clamped, interleaved SwiGLU (gpt_oss)

  bool routed() const { return moe.experts > 0; }
  friend bool operator==(const layer_spec&, const layer_spec&) = default;
};

struct model {
  std::string name;
  std::string model_type;    ///< Hugging Face's, "llama"; "gpt" for the native form
  std::int64_t hidden = 0, vocab = 0;
  std::int64_t max_positions = 0;  ///< longest sequence its authors state, 0 when they state none
  bool tied_embeddings = false;
  std::vector<layer_spec> layers;
  std::int64_t mtp_layers = 0;     ///< multi-token-prediction layers after `layers`, each like the last of them
};

/// Parameters of one layer (attention, MLP and two norms) and of the whole model (embeddings and final norm included).
/// Weights only: biases and learned positions, 0.02 % of GPT-3 175B, are left out as in the published counts.
std::int64_t layer_parameters(const model& m, const layer_spec& l);
std::int64_t parameters(const model& m);

/// Parameters by part; `output` is zero when the output layer shares the embedding's weights.
struct parameter_parts {
  std::int64_t embedding = 0, attention = 0, mlp = 0, norms = 0, output = 0;
};
parameter_parts parameters_by_part(const model& m);

/// FLOPs of training one token, forward and backward (3 x forward), 2 per multiply-add, as Megatron-Bridge counts
/// them: attention over half of the s x s matrix (`causal`) or all of it, logits included, embedding, norms, softmax,
/// optimizer and recompute left out. [docs/models-and-assumptions.md#flops]
double training_flops_per_token(const model& m, std::int64_t sequence, bool causal);

/// Bytes of KV cache one token takes over all layers, on all ranks together.
double kv_bytes_per_token(const model& m, precision kv);

/// Bytes of all weights when every one of them is stored in `p`.
double weight_bytes(const model& m, precision p);

}  // namespace nvlsim
