// Layers of a model as one rank of a serving replica sees them.
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// The role of a weight matrix, which decides its storage format.
enum class weight_role { dense, attention, expert, sixteen_bit };

struct rank_gemm {
  const char* name;
  weight_role role;
  double n = 0, k = 0;
};

/// Equal layers, as one rank sees them. KV heads are replicated if there are fewer than ranks.
struct layer_slice {
  int layers = 0;
  layer_spec spec;
  double heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  bool gated = true;
  std::vector<rank_gemm> before_attention, after_attention;
  // experts held here, and the width of each
  double local_experts = 0, expert_ffn = 0;
  int expert_ranks = 1;
  double routed_width = 0;  ///< of the inner vectors of a token in its experts, on an average rank
  double state_bytes = 0;   ///< state of a sequence in one layer, independent of its length

  double qkv_width() const { return heads * head_dim + kv_heads * (head_dim + value_dim()); }
  double value_dim() const { return static_cast<double>(nvlsim::value_dim(spec)); }
  double up_width() const { return gated ? 2 * ffn : ffn; }
  double expert_up_width() const { return spec.gated_mlp ? 2 * expert_ffn : expert_ffn; }
  /// Width of the input and output vectors of routed experts.
  double expert_hidden(double hidden) const {
    return spec.moe.latent > 0 ? static_cast<double>(spec.moe.latent) : hidden;
  }
  /// Parts that begin with a norm and end with a sum over ranks: a token mixer, an MLP. 2 per layer in most
  /// models, 1 in hybrids.
  int blocks() const;
  bool scans() const {
    return spec.attention == attention_kind::linear || spec.attention == attention_kind::mamba;
  }
  /// Mean width of the inner vectors of a layer, for traffic between kernels.
  double inner_width() const { return spec.routed() ? routed_width : ffn; }
  /// Weights of the experts of one layer on this rank.
  double expert_weights(double hidden) const {
    return local_experts * expert_hidden(hidden) * (expert_up_width() + expert_ffn);
  }
  /// Weights of all matrices of one layer.
  double gemm_weights(double hidden) const;
  /// Cached elements per token in one layer, including indexer keys. With compressed attention, pooled keys only.
  double kv_values() const;
  /// Whether a window limits its cache. A window in addition to pooled keys does not count, because it is small.
  bool windowed() const { return spec.window > 0 && spec.attention != attention_kind::compressed; }
};

/// Ranks that share the weights of a layer. `tp` splits heads and MLPs. `ep` groups of all `ranks` divide the
/// experts, and the ranks of a group split each expert.
struct rank_layout {
  int tp = 1, ep = 1, ranks = 1;
  precision state =
      precision::fp32;  ///< of the states of scans; Nemotron-3 and Qwen3.5 state FP32 in their configs
};
/// Share of the layers of a model on the fullest of `pp` stages.
double fullest_stage(const model& m, int pp);
/// The layers, grouped by shape.
std::vector<layer_slice> slice_layers(const std::vector<layer_spec>& layers, std::int64_t hidden, rank_layout r);
std::vector<layer_slice> slice_layers(const model& m, rank_layout r);

}  // namespace nvlsim
