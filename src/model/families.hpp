// Readers of Hugging Face's config.json, by family. Each adds problems to those of the file.
#pragma once

#include "model/fields.hpp"

namespace nvlsim {

/// Which layers see the keys of `sliding_window` only.
enum class window_rule {
  none,
  stated,     ///< those of `layer_types`; without it all, or all but every n-th
  when_used,  ///< with `use_sliding_window`: those of `layer_types`, or all from `max_window_layers` on
};

/// What distinguishes decoders with grouped-query attention and a dense, gated MLP; a row of the table in
/// load.cpp.
struct decoder_traits {
  qk_norm_kind qk_norm = qk_norm_kind::none;
  bool heads_follow = true;  ///< KV heads and head size may follow from heads and the hidden size
  window_rule windows = window_rule::none;
  std::int64_t full_every = 0;  ///< without `layer_types`, every n-th layer sees all keys; 0: none does
  bool post_norms = false;
  bool tied = false;                 ///< if `tie_word_embeddings` is absent
  const char* predictors = nullptr;  ///< member with the number of prediction modules
  dimension_defaults defaults = {};
};

// dense_families.cpp
model read_decoder(const model_file& f, const decoder_traits& t);
model read_bloom(const model_file& f);
model read_omni_talker(const model_file& f);
model read_nemotron_nas(const model_file& f);
// expert_families.cpp
/// Layers of `o` with a dense MLP of `intermediate_size`, or with experts.
model routed_model(const model_file& f, outline o, const moe_spec& e, const std::vector<bool>& routing);
model read_qwen2_moe(const model_file& f);
model read_mixtral(const model_file& f);
model read_qwen3_moe(const model_file& f);
model read_llama4(const model_file& f);
model read_gpt_oss(const model_file& f);
model read_minimax_m2(const model_file& f);
model read_minimax_m3(const model_file& f);
model read_glm4_moe(const model_file& f);
model read_ernie(const model_file& f);
model read_step(const model_file& f);
model read_mimo_v2(const model_file& f);
// latent_families.cpp
moe_spec read_deepseek_experts(const model_file& f);
/// Which layers have routed experts: `mlp_layer_types`, or `first_k_dense_replace` and `moe_layer_freq`.
std::vector<bool> deepseek_routing(const model_file& f, checked layers);
void read_latent_attention(const model_file& f, layer_spec& l);
void read_indexer(const model_file& f, layer_spec& l);
model read_deepseek_v3(const model_file& f);
model read_deepseek_v32(const model_file& f);
model read_deepseek_v4(const model_file& f);
model read_deepseek_v41(const model_file& f);
// gemma4.cpp
model read_gemma4(const model_file& f);
// hybrid_families.cpp
model read_qwen3_5(const model_file& f);
model read_qwen3_5_moe(const model_file& f);
model read_qwen4(const model_file& f);
model read_kimi_linear(const model_file& f);
model read_glm5_next(const model_file& f);
model read_nemotron_h(const model_file& f);

// towers.cpp
/// Encoders that the file describes beside its language model.
std::vector<tower_spec> read_towers(config::reader& root, const model& m);

/// The native form (native.cpp), strict.
model read_native(config::reader& r, const diagnostics& problems);
inline constexpr std::string_view native_schema = "nvlsim.model/1";

}  // namespace nvlsim
