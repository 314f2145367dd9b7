// Shapes of transformer models, with their parameters, FLOPs and bytes.
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

/// The token mixer of a layer. In hybrid models the kind differs by layer; `none` is a layer with only an MLP.
enum class attention_kind { grouped_query, mla, compressed, linear, mamba, none };

/// Multi-head latent attention (DeepSeek). If q_lora_rank is 0, queries are projected directly from the hidden
/// state.
struct mla_spec {
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, qk_nope_dim = 0, qk_rope_dim = 0, v_head_dim = 0;
  friend bool operator==(const mla_spec&, const mla_spec&) = default;
};

/// The attention of DeepSeek-V4. Queries, and the output of `o_groups` groups of heads, go through low-rank
/// projections. One vector of `head_dim` is the key and the value of all heads. It is cached for the last `window`
/// tokens, and beyond them once per `ratio` tokens, pooled by a learned gate; not at all if `ratio` is 0.
struct compressed_spec {
  std::int64_t q_lora_rank = 0, o_lora_rank = 0, o_groups = 0, ratio = 0;
  friend bool operator==(const compressed_spec&, const compressed_spec&) = default;
};

/// Routed experts, which replace the dense MLP.
struct moe_spec {
  std::int64_t experts = 0, top_k = 0, expert_ffn = 0;
  std::int64_t shared_ffn = 0;    ///< total width of the shared experts; 0: none
  std::int64_t latent = 0;        ///< width of the input of routed experts, after a projection; 0: the hidden size
  bool balanced_by_bias = false;  ///< loads were balanced by a bias on scores (DeepSeek-V3), not by a loss
  std::int64_t groups = 1, top_groups = 1;  ///< a token's experts are all in the best `top_groups` of `groups`
                                            ///< equal groups of consecutive experts (DeepSeek-V3)
  friend bool operator==(const moe_spec&, const moe_spec&) = default;
};

/// A state-space layer (Mamba-2) or linear attention (gated delta net): a state of fixed size instead of a KV
/// cache.
struct scan_spec {
  std::int64_t heads = 0, head_dim = 0, state = 0, groups = 0;
  std::int64_t key_heads = 0;  ///< linear attention: heads of queries and keys, of width `state`
  std::int64_t conv_kernel = 0;
  std::int64_t chunk = 128;    ///< tokens per chunk in training kernels
  std::int64_t gate_rank = 0;  ///< linear attention whose decay is a vector per head (Kimi's KDA): it and the
                               ///< output gate come from projections of this rank; 0: a scalar, a full projection
  friend bool operator==(const scan_spec&, const scan_spec&) = default;
};

/// Norms of queries and keys: none, per head (Qwen3), or over all heads (MiniMax-M2), for which TP ranks sum their
/// squares.
enum class qk_norm_kind { none, per_head, joint };

/// Where the keys and values of a layer come from. `keys_are_values`: one projection gives both, each with its
/// norm (Gemma 4). `shared`: those of a layer before it; nothing is projected or cached.
enum class kv_source { own, keys_are_values, shared };

/// One decoder layer: a token mixer, then a dense MLP (`ffn_hidden` > 0), routed experts, or neither.
struct layer_spec {
  attention_kind attention = attention_kind::grouped_query;
  std::int64_t heads = 0, kv_heads = 0;  ///< 0 in layers without attention
  std::int64_t head_dim = 0;             ///< of queries and keys
  std::int64_t v_head_dim = 0;           ///< of values, where it differs (MiMo-V2); 0: head_dim
  kv_source kv = kv_source::own;
  std::int64_t window = 0;  ///< maximum number of keys per query (sliding-window or chunked attention); 0: all
  std::int64_t sparse_keys = 0;                 ///< keys per query that an indexer selects (DeepSeek); 0: all
  std::int64_t index_heads = 0, index_dim = 0;  ///< of the indexer; 0: reuses the selection of another layer
  mla_spec mla{};
  compressed_spec compressed{};
  scan_spec scan{};
  std::int64_t ffn_hidden = 0;
  bool gated_mlp = true;  ///< of the dense MLP and of experts
  moe_spec moe{};
  qk_norm_kind qk_norm = qk_norm_kind::none;
  bool attention_gate = false;             ///< a projection as wide as the queries gates the output (Qwen3.5)
  bool head_gate = false;                  ///< a projection to one scalar per head gates the output (Step-3.5)
  bool post_norms = false;                 ///< norms after each block too (Gemma)
  std::int64_t layer_input = 0;            ///< width of a vector per token and layer from a table (Gemma 3n, 4);
                                           ///< 0: none
  bool bidirectional = false;              ///< queries see later keys, too (encoders)
  bool biased_clamped_activation = false;  ///< experts with biases and clamped, interleaved SwiGLU (gpt_oss)

  bool routed() const { return moe.experts > 0; }
  friend bool operator==(const layer_spec&, const layer_spec&) = default;
};

/// Storage formats of the weights of a published checkpoint, as stated in its files. Unknown formats are empty.
struct checkpoint_spec {
  std::string source;     ///< "hf_quant_config.json" or "quantization_config"; empty if nothing is stated
  std::string algorithm;  ///< as published: "NVFP4", "fp8"
  std::optional<precision> weights, attention_weights, expert_weights;  ///< the last two only if they differ
  std::optional<precision> kv_cache;
  friend bool operator==(const checkpoint_spec&, const checkpoint_spec&) = default;
};

/// An encoder of images or sound in front of the language model: a transformer that works on patches.
struct tower_spec {
  std::string name;             ///< "vision", "audio"
  std::int64_t parameters = 0;  ///< encoder and projector, without biases; 0: their sizes are not stated
  std::int64_t layers = 0, hidden = 0, heads = 0, ffn_hidden = 0;
  bool gated_mlp = false;
  double patches_per_token = 4;  ///< patches that the projector merges into a token of the language model
  std::int64_t projector = 0;    ///< parameters of the projector, of `parameters`
  friend bool operator==(const tower_spec&, const tower_spec&) = default;
};

struct model {
  std::string name;
  std::string model_type;  ///< Hugging Face's, "llama"; "gpt" for the native form
  std::int64_t hidden = 0, vocab = 0;
  std::int64_t max_positions = 0;  ///< longest sequence according to its authors; 0: not stated
  bool tied_embeddings = false;
  std::int64_t residual_streams = 1;  ///< parallel copies of the hidden state (hyper-connections of DeepSeek-V4)
  std::vector<layer_spec> layers;
  std::int64_t mtp_layers = 0;        ///< multi-token-prediction modules after `layers`
  std::vector<layer_spec> mtp_block;  ///< decoder layers of each module: like the last of `layers`, unless hybrid
  std::int64_t lookup_tables = 0;     ///< parameters of tables beside the embedding from which tokens read rows:
                                      ///< n-grams (DeepSeek-V4.1), inputs of every layer (Gemma 3n, 4)
  std::vector<tower_spec> towers;
  checkpoint_spec checkpoint{};
  friend bool operator==(const model&, const model&) = default;
};

/// Width of a value vector of grouped-query attention.
std::int64_t value_dim(const layer_spec& l);
/// Keys and values that grouped-query attention projects for a token, over all heads.
std::int64_t projected_kv(const layer_spec& l);
/// Width of the projection that gates the output of attention; 0: none.
std::int64_t gate_width(const layer_spec& l);

/// Whether any layer has routed experts.
bool has_routed_experts(const model& m);

/// Parameters of one layer (attention, MLP or all experts and router, norms) and of the whole model (including
/// embeddings and the final norm). Excludes biases, learned positions and scalars per head, as published counts
/// do; they are 0.02 % of GPT-3 175B. Excludes multi-token prediction and towers.
std::int64_t layer_parameters(const model& m, const layer_spec& l);
std::int64_t parameters(const model& m);
/// Parameters of the routed experts of one layer.
std::int64_t expert_parameters(const model& m, const layer_spec& l);
/// Active parameters of one token: all except those of experts to which it is not routed, and of lookup tables.
std::int64_t active_parameters(const model& m);
/// Parameters of the multi-token-prediction modules, which `parameters` excludes.
std::int64_t mtp_parameters(const model& m);

/// Parameters by part. `mlp` includes shared experts. `output` is zero if the output layer shares the weights of
/// the embedding.
struct parameter_parts {
  std::int64_t embedding = 0, tables = 0, attention = 0, mlp = 0, experts = 0, router = 0, norms = 0, output = 0;
};
parameter_parts parameters_by_part(const model& m);
/// Parameters of the encoders in front of the language model, which `parameters` excludes.
std::int64_t tower_parameters(const model& m);

/// FLOP counts of Megatron-Bridge. Before release 26.06 it ignored windows, and counted SwiGLU with a clamp or
/// another activation (GPT-OSS) as an MLP of two matrices.
enum class flop_rules { since_26_06, before_26_06 };

/// FLOPs of training one token, forward and backward (3 x forward), with 2 FLOPs per multiply-add, as
/// Megatron-Bridge counts them. Includes attention over half of the s x s matrix (`causal`) or all of it, the
/// experts of one token, logits and multi-token prediction. Excludes embedding, router, norms, softmax, optimizer
/// and recompute. [docs/models-and-assumptions.md#flops]
double training_flops_per_token(const model& m, std::int64_t sequence, bool causal,
                                flop_rules rules = flop_rules::since_26_06);

/// Bytes of KV cache per token, over all layers and ranks, while no window is full.
double kv_bytes_per_token(const model& m, precision kv);

/// KV cache of one sequence with so many tokens, in bytes. Layers with a window hold no more than the window.
double kv_bytes_per_sequence(const model& m, precision kv, std::int64_t tokens);

/// Scan state and convolution state (BF16) of one layer, in bytes a sequence, whatever its length.
double state_bytes(const layer_spec& l, precision state = precision::fp32);
/// The same for all layers.
double state_bytes_per_sequence(const model& m);

/// Bytes of all weights if they are stored in `p`.
double weight_bytes(const model& m, precision p);

}  // namespace nvlsim
