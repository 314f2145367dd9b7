// Mixture-of-experts models with grouped-query attention.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

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

/// The routed layers of Step-3.5: "3,4,5".
std::vector<bool> step_routing(const model_file& f, checked layers) {
  std::vector<bool> out(static_cast<std::size_t>(layers.value), false);
  const std::string list = f.r.string("moe_layers_enum");
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    std::int64_t layer = -1;
    const auto [stop, error] = std::from_chars(list.data() + at, list.data() + end, layer);
    if (error != std::errc{} || stop != list.data() + end || layer < 0 || layer >= layers.value) {
      if (layers.sound)
        f.r.fail("moe_layers_enum",
                 fmt::format("expected layers from 0 to {}, separated by commas", layers.value - 1));
      break;
    }
    out[static_cast<std::size_t>(layer)] = true;
    at = end + 1;
  }
  return out;
}

}  // namespace

model routed_model(const model_file& f, outline o, const moe_spec& e, const std::vector<bool>& routing) {
  layer_spec routed = o.layer;
  routed.moe = e;
  if (std::find(routing.begin(), routing.end(), false) != routing.end())
    o.layer.ffn_hidden = f.r.integer("intermediate_size", ffn_range);
  for (const bool r : routing) o.m.layers.push_back(r ? routed : o.layer);
  o.m.tied_embeddings = read_tied(f);
  return o.m;
}

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
  return routed_model(f, o, read_experts(f, "moe_intermediate_size"), qwen_routing(f, o.layers.value));
}

model read_qwen2_moe(const model_file& f) {
  const outline o = read_outline(f, hugging_face_derived());
  moe_spec e = read_experts(f, "moe_intermediate_size");
  e.shared_ffn = f.r.integer("shared_expert_intermediate_size", ffn_range);
  return routed_model(f, o, e, qwen_routing(f, o.layers.value));
}

model read_glm4_moe(const model_file& f) {
  outline o = read_outline(f, hugging_face());
  if (f.r.boolean_or("use_qk_norm", false)) o.layer.qk_norm = qk_norm_kind::per_head;
  const moe_spec e = read_deepseek_experts(f);
  model m = routed_model(f, o, e, deepseek_routing(f, o.layers));
  read_mtp(f, "num_nextn_predict_layers", m, {m.layers.back()});
  return m;
}

model read_ernie(const model_file& f) {
  const outline o = read_outline(f, hugging_face_derived());
  moe_spec e = read_experts(f, "moe_intermediate_size");
  e.shared_ffn = e.expert_ffn * f.r.integer_or("moe_num_shared_experts", 0, shared_range);
  e.balanced_by_bias = f.r.boolean_or("moe_use_aux_free", true);
  const std::int64_t last = o.layers.value - 1, every = f.r.integer_or("moe_layer_interval", 1, layer_range);
  const std::int64_t begin = f.r.integer_or("moe_layer_start_index", 1, {0, layer_range.high});
  std::int64_t end = f.r.integer_or("moe_layer_end_index", -1, {-1, layer_range.high});
  if (end < 0) end = last;
  std::vector<bool> routing;
  for (std::int64_t i = 0; i <= last; ++i) routing.push_back((i + 1) % every == 0 && i >= begin && i <= end);
  return routed_model(f, o, e, routing);
}

// A window layer has other heads, and one scalar per head gates the output of attention.
model read_step(const model_file& f) {
  constexpr std::int64_t full_every = 4;
  spelling names = hugging_face();
  if (f.r.has("num_attention_groups")) names.kv_heads = "num_attention_groups";  // num_key_value_heads repeats it
  outline o = read_outline(f, names);
  o.layer.qk_norm = qk_norm_kind::per_head;
  o.layer.head_gate = f.r.boolean_or("use_head_wise_attn_gate", false);
  layer_spec sliding = o.layer;
  sliding.window = f.r.integer("sliding_window", positions_range);
  if (auto other = f.r.find_child("attention_other_setting"))
    read_heads({f.root, *other, f.problems}, names, {}, sliding);
  moe_spec e = read_experts(f, "moe_intermediate_size");
  e.shared_ffn = f.r.integer_or("share_expert_dim", 0, {0, ffn_range.high});
  e.balanced_by_bias = true;
  const std::int64_t ffn = f.r.integer("intermediate_size", ffn_range);
  const auto routing = step_routing(f, o.layers);
  std::vector<bool> slides = read_sliding(f, o.layers, full_every);
  slides.resize(routing.size());
  for (std::size_t i = 0; i < routing.size(); ++i) {
    layer_spec l = slides[i] ? sliding : o.layer;
    if (routing[i]) l.moe = e;
    else l.ffn_hidden = ffn;
    o.m.layers.push_back(l);
  }
  o.m.tied_embeddings = read_tied(f);
  sliding.ffn_hidden = ffn;
  read_mtp(f, "num_nextn_predict_layers", o.m, {sliding});
  return o.m;
}

// Window layers have other KV heads; values are narrower than keys.
model read_mimo_v2(const model_file& f) {
  outline o = read_outline(f, hugging_face());
  o.layer.v_head_dim = f.r.integer_or("v_head_dim", o.layer.head_dim, head_range);
  layer_spec sliding = o.layer;
  const spelling names = {"num_hidden_layers", "hidden_size", "swa_num_attention_heads", "swa_num_key_value_heads",
                          "swa_head_dim"};
  read_heads(f, names, o.hidden, sliding);
  sliding.v_head_dim = f.r.integer_or("swa_v_head_dim", sliding.head_dim, head_range);
  sliding.window = f.r.integer("sliding_window", positions_range);
  std::vector<bool> slides = read_digits(f, "hybrid_layer_pattern", o.layers);
  if (slides.empty()) f.r.fail("", "required member \"hybrid_layer_pattern\" is missing");
  model m = routed_model(f, o, read_deepseek_experts(f), deepseek_routing(f, o.layers));
  slides.resize(m.layers.size());
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    if (!slides[i]) continue;
    layer_spec l = sliding;
    l.moe = m.layers[i].moe;
    l.ffn_hidden = m.layers[i].ffn_hidden;
    m.layers[i] = l;
  }
  return m;
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

// Blocks of keys are chosen by an indexer in layers that a list names.
model read_minimax_m3(const model_file& f) {
  outline o = read_outline(f, hugging_face());
  if (f.r.boolean_or("use_qk_norm", false)) o.layer.qk_norm = qk_norm_kind::per_head;
  layer_spec routed = o.layer;
  routed.moe = read_experts(f, f.r.has("moe_intermediate_size") ? "moe_intermediate_size" : "intermediate_size");
  routed.moe.shared_ffn = f.r.integer_or("shared_intermediate_size", 0, {0, ffn_range.high}) *
                          f.r.integer_or("n_shared_experts", 1, shared_range);
  routed.moe.balanced_by_bias = f.r.boolean_or("use_routing_bias", true);
  o.layer.ffn_hidden = f.r.integer("dense_intermediate_size", ffn_range);
  std::vector<bool> routing = read_digits(f, "moe_layer_freq", o.layers), sparse;
  routing.resize(static_cast<std::size_t>(o.layers.value), routing.empty());
  layer_spec chosen;
  if (auto s = f.r.find_child("sparse_attention_config"); s && s->boolean_or("use_sparse_attention", true)) {
    sparse = read_digits({f.root, *s, f.problems}, "sparse_attention_freq", o.layers);
    chosen.index_heads = s->integer("sparse_num_index_heads", head_range);
    chosen.index_dim = s->integer("sparse_index_dim", head_range);
    chosen.sparse_keys =
        s->integer("sparse_topk_blocks", head_range) * s->integer("sparse_block_size", head_range);
  }
  sparse.resize(routing.size());
  for (std::size_t i = 0; i < routing.size(); ++i) {
    layer_spec l = routing[i] ? routed : o.layer;
    if (sparse[i]) {
      l.index_heads = chosen.index_heads, l.index_dim = chosen.index_dim;
      l.sparse_keys = chosen.sparse_keys;
    }
    o.m.layers.push_back(l);
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
