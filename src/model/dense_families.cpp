#include <fmt/format.h>

#include <algorithm>

#include "model/families.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t bloom_positions = 2048;  // of its training

/// Keys a query sees in each layer; 0: all.
std::vector<std::int64_t> windows_of(const model_file& f, const decoder_traits& t, checked layers) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(layers.value), 0);
  if (t.windows == window_rule::none) return out;
  const auto window = f.r.find_integer("sliding_window", positions_range);
  const auto slides = read_sliding(f, layers, t.full_every);
  const bool used = t.windows != window_rule::when_used || f.r.boolean_or("use_sliding_window", false);
  std::int64_t first = 0;
  if (t.windows == window_rule::when_used) first = f.r.integer_or("max_window_layers", 0, {0, layer_range.high});
  if (!used) return out;
  if (!window && t.full_every > 0) f.r.fail("", "required member \"sliding_window\" is missing");
  for (std::size_t i = 0; i < out.size(); ++i)
    if (slides.empty() ? static_cast<std::int64_t>(i) >= first : slides[i]) out[i] = window.value_or(0);
  return out;
}

}  // namespace

model read_decoder(const model_file& f, const decoder_traits& t) {
  outline o = read_outline(f, t.heads_follow ? hugging_face_derived() : hugging_face(), t.defaults);
  layer_spec& l = o.layer;
  l.ffn_hidden = read_or(f, "intermediate_size", t.defaults.ffn, ffn_range);
  l.qk_norm = t.qk_norm;
  l.post_norms = t.post_norms;
  o.m.tied_embeddings = read_tied(f, t.tied);
  for (const std::int64_t window : windows_of(f, t, o.layers)) {
    o.m.layers.push_back(l);
    o.m.layers.back().window = window;
  }
  if (t.predictors && !o.m.layers.empty()) read_mtp(f, t.predictors, o.m, {o.m.layers.back()});
  return o.m;
}

model read_bloom(const model_file& f) {
  static const spelling names = {{"n_layer", {"num_hidden_layers"}},
                                 {"hidden_size", {"n_embed"}},
                                 {"n_head", {"num_attention_heads"}},
                                 "num_key_value_heads",
                                 "head_dim",
                                 true};
  outline o = read_outline(f, names);
  o.layer.ffn_hidden = 4 * o.m.hidden;
  o.layer.gated_mlp = false;
  o.m.max_positions = f.r.integer_or("seq_length", bloom_positions, positions_range);
  o.m.tied_embeddings = read_tied(f, true);
  o.repeat();
  return o.m;
}

// The speaking part of Qwen2.5-Omni reads vectors of another model's width and projects them to its own.
model read_omni_talker(const model_file& f) {
  model m = read_decoder(f, {});
  const std::int64_t width = f.r.integer("embedding_size", hidden_range);
  m.lookup_tables = m.vocab * (width - m.hidden) + width * m.hidden;
  if (width < m.hidden) f.r.fail("embedding_size", fmt::format("{} is less than hidden_size {}", width, m.hidden));
  return m;
}

// NVIDIA's models from architecture search: each layer has its own attention and MLP, or lacks one.
model read_nemotron_nas(const model_file& f) {
  outline o = read_sizes(f, hugging_face());
  const checked heads = read_integer(f, "num_attention_heads", head_range);
  o.layer.heads = heads.value;
  if (o.hidden.sound && heads.sound && o.hidden.value % heads.value != 0)
    f.r.fail("num_attention_heads",
             fmt::format("hidden_size {} is not a multiple of {}", o.hidden.value, heads.value));
  o.layer.head_dim = o.hidden.value / std::max<std::int64_t>(1, heads.value);
  o.m.tied_embeddings = read_tied(f);
  std::vector<config::reader> blocks = f.r.elements("block_configs");
  if (o.layers.sound && std::ssize(blocks) != o.layers.value)
    f.r.fail("block_configs", fmt::format("has {} elements for {} layers", blocks.size(), o.layers.value));
  for (config::reader& block : blocks) {
    layer_spec l = o.layer;
    config::reader attention = block.child("attention"), ffn = block.child("ffn");
    if (attention.boolean_or("no_op", false)) {
      l = {};
      l.attention = attention_kind::none;
    } else {
      const std::int64_t group = attention.integer("n_heads_in_group", head_range);
      if (group > 0 && l.heads % group != 0)
        attention.fail("n_heads_in_group", fmt::format("{} does not divide {} heads", group, l.heads));
      l.kv_heads = l.heads / std::max<std::int64_t>(1, group);
    }
    if (!ffn.boolean_or("no_op", false)) {
      constexpr std::int64_t step = 256;  // the width is rounded up to a multiple of it
      constexpr config::range<double> multiples{1.0 / 1024, 64};
      const double width = 2 * ffn.number("ffn_mult", multiples) * static_cast<double>(o.m.hidden) / 3;
      l.ffn_hidden = (static_cast<std::int64_t>(width) + step - 1) / step * step;
    }
    for (config::reader* part : {&attention, &ffn})
      if (part->boolean_or("replace_with_linear", false))
        part->fail("replace_with_linear", "layers that are one linear projection are not supported");
    o.m.layers.push_back(l);
  }
  return o.m;
}

}  // namespace nvlsim
