// Mixture-of-experts models with grouped-query attention.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/families.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t llama4_chunk = 8192, llama4_global_every = 4;  // of transformers' Llama4TextConfig

/// Which of `layers` layers have routed experts.
std::vector<bool> qwen_routing(const model_file& f, std::int64_t layers) {
  const std::int64_t step = f.r.integer_or("decoder_sparse_step", 1, layer_range);
  const auto dense = read_integers(f, "mlp_only_layers", {0, layer_range.high});
  std::vector<bool> out;
  for (std::int64_t i = 0; i < layers; ++i)
    out.push_back((i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end());
  return out;
}

std::vector<bool> llama4_routing(const model_file& f, std::int64_t layers) {
  const std::int64_t step = f.r.integer_or("interleave_moe_layer_step", 1, layer_range);
  std::vector<bool> out;
  for (std::int64_t i = 0; i < layers; ++i) out.push_back((i + 1) % step == 0);
  if (!f.r.has("moe_layers")) return out;
  out.assign(out.size(), false);
  for (const std::int64_t i : read_integers(f, "moe_layers", {0, layers - 1}))
    out[static_cast<std::size_t>(i)] = true;
  return out;
}

/// Layers without rotary embedding attend to all keys, the others to those of their chunk.
std::vector<bool> llama4_chunked(const model_file& f, checked layers) {
  constexpr std::array<std::string_view, 2> names = {"full_attention", "chunked_attention"};
  std::vector<bool> out;
  for (const std::size_t name : read_names(f, "layer_types", names, layers)) out.push_back(name == 1);
  if (!out.empty()) return out;
  for (const std::int64_t rotary : read_integers(f, "no_rope_layers", {0, 1})) out.push_back(rotary == 1);
  if (layers.sound && !out.empty() && out.size() != static_cast<std::size_t>(layers.value))
    f.r.fail("no_rope_layers", fmt::format("has {} elements for {} layers", out.size(), layers.value));
  out.resize(out.empty() ? 0 : static_cast<std::size_t>(layers.value));
  for (std::int64_t i = std::ssize(out); i < layers.value; ++i) out.push_back((i + 1) % llama4_global_every != 0);
  return out;
}

}  // namespace

model read_mixtral(const model_file& f) {
  outline o = read_outline(f, hugging_face_derived());
  o.layer.moe = read_experts(f, "intermediate_size");
  o.layer.window = f.r.find_integer("sliding_window", positions_range).value_or(0);
  o.m.tied_embeddings = read_tied(f);
  o.repeat();
  return o.m;
}

model read_qwen3_moe(const model_file& f) {
  outline o = read_outline(f, hugging_face());
  o.layer.qk_norm = qk_norm_kind::per_head;
  layer_spec routed = o.layer;
  routed.moe = read_experts(f, "moe_intermediate_size");
  const auto routing = qwen_routing(f, o.layers.value);
  if (std::find(routing.begin(), routing.end(), false) != routing.end())
    o.layer.ffn_hidden = f.r.integer("intermediate_size", ffn_range);
  for (const bool r : routing) o.m.layers.push_back(r ? routed : o.layer);
  o.m.tied_embeddings = read_tied(f);
  return o.m;
}

model read_llama4(const model_file& f) {
  outline o = read_outline(f, hugging_face());
  layer_spec routed = o.layer;
  routed.moe = read_experts(f, "intermediate_size");
  routed.moe.shared_ffn = routed.moe.expert_ffn;
  const auto routing = llama4_routing(f, o.layers.value);
  if (std::find(routing.begin(), routing.end(), false) != routing.end())
    o.layer.ffn_hidden = f.r.integer("intermediate_size_mlp", ffn_range);
  const auto chunked = llama4_chunked(f, o.layers);
  const std::int64_t chunk = f.r.integer_or("attention_chunk_size", llama4_chunk, positions_range);
  for (std::size_t i = 0; i < routing.size(); ++i) {
    o.m.layers.push_back(routing[i] ? routed : o.layer);
    if (chunked[i]) o.m.layers.back().window = chunk;
  }
  o.m.tied_embeddings = read_tied(f);
  return o.m;
}

model read_gpt_oss(const model_file& f) {
  constexpr std::array<std::string_view, 2> names = {"full_attention", "sliding_attention"};
  outline o = read_outline(f, hugging_face());
  o.layer.moe = read_experts(f, "intermediate_size");
  o.layer.biased_clamped_activation = true;
  const std::int64_t window = f.r.integer("sliding_window", positions_range);
  const auto types = read_names(f, "layer_types", names, o.layers);
  o.repeat();
  for (std::size_t i = 0; i < o.m.layers.size(); ++i) {
    const bool sliding = types.empty() ? i % 2 == 0 : types[i] == 1;
    if (sliding) o.m.layers[i].window = window;
  }
  o.m.tied_embeddings = read_tied(f);
  return o.m;
}

model read_minimax_m2(const model_file& f) {
  outline o = read_outline(f, hugging_face());
  o.layer.moe = read_experts(f, "intermediate_size");
  o.layer.moe.shared_ffn = f.r.integer_or("shared_intermediate_size", 0, {0, ffn_range.high});
  o.layer.moe.balanced_by_bias = f.r.boolean_or("use_routing_bias", true);
  static const std::array<std::string, 2> norms = {"per_head", "per_layer"};
  const bool joint = f.r.one_of_or("qk_norm_type", norms, 0) == 1;
  if (f.r.boolean_or("use_qk_norm", false)) o.layer.qk_norm = joint ? qk_norm_kind::joint : qk_norm_kind::per_head;
  o.m.tied_embeddings = read_tied(f);
  o.repeat();
  return o.m;
}

}  // namespace nvlsim
