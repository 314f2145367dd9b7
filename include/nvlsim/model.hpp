// Transformer shapes, and what they cost in parameters, FLOPs and bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/precision.hpp"
#include "nvlsim/units.hpp"

namespace nvlsim {

/// One decoder layer: grouped-query attention and an MLP.
struct layer_spec {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t ffn_hidden = 0;
  bool gated_mlp = true;
  bool qk_norm = false;  ///< queries and keys are normalised a head (Qwen3)

  friend bool operator==(const layer_spec&, const layer_spec&) = default;
};

struct model {
  std::string name;
  std::string model_type;    ///< Hugging Face's, "llama"; "gpt" for the native form
  std::int64_t hidden = 0, vocab = 0;
  std::int64_t max_positions = 0;  ///< longest sequence its authors state, 0 when they state none
  bool tied_embeddings = false;
  std::vector<layer_spec> layers;
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
