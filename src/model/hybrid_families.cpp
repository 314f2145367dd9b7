// Models whose layers mix tokens in different ways.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "model/families.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t default_kernel = 4;
constexpr std::int64_t delta_chunk = 64;  // of flash-linear-attention's gated delta rule

layer_spec linear_layer(const model_file& f, const layer_spec& full) {
  layer_spec l;
  l.attention = attention_kind::linear;
  l.scan.heads = f.r.integer("linear_num_value_heads", head_range);
  l.scan.head_dim = f.r.integer("linear_value_head_dim", head_range);
  l.scan.key_heads = f.r.integer("linear_num_key_heads", head_range);
  l.scan.state = f.r.integer("linear_key_head_dim", head_range);
  l.scan.conv_kernel = f.r.integer_or("linear_conv_kernel_dim", default_kernel, head_range);
  l.scan.chunk = delta_chunk;
  l.ffn_hidden = full.ffn_hidden;
  l.moe = full.moe;
  return l;
}

outline read_qwen3_5_attention(const model_file& f) {
  outline o = read_outline(f, hugging_face());
  o.layer.qk_norm = qk_norm_kind::per_head;
  o.layer.attention_gate = f.r.boolean_or("attn_output_gate", true);
  return o;
}

model read_qwen3_5_layers(const model_file& f, outline o) {
  constexpr std::array<std::string_view, 2> names = {"full_attention", "linear_attention"};
  constexpr std::int64_t default_interval = 4;  // of transformers' Qwen3_5TextConfig
  const layer_spec linear = linear_layer(f, o.layer);
  const auto types = read_names(f, "layer_types", names, o.layers);
  const std::int64_t interval = f.r.integer_or("full_attention_interval", default_interval, layer_range);
  for (std::int64_t i = 0; i < o.layers.value; ++i) {
    const bool full = types.empty() ? (i + 1) % interval == 0 : types[static_cast<std::size_t>(i)] == 0;
    o.m.layers.push_back(full ? o.layer : linear);
  }
  o.m.tied_embeddings = read_tied(f);
  read_mtp(f, "mtp_num_hidden_layers", o.m, {o.layer});
  return o.m;
}

// Nemotron-H: a letter, or in newer files a word, for each layer.
constexpr std::string_view letters = "M*-E";
constexpr std::array<std::string_view, 4> words = {"mamba", "attention", "mlp", "moe"};
enum block : std::size_t { mamba_block, attention_block, mlp_block, moe_block, block_kinds };
using pattern = std::vector<std::size_t>;

pattern read_letters(const model_file& f, const char* key) {
  pattern out;
  for (const char c : f.r.string(key)) {
    const std::size_t at = letters.find(c);
    if (at == letters.npos) {
      f.r.fail(key,
               fmt::format("layer {}: expected one of M (mamba), * (attention), - (mlp), E (moe)", out.size()));
      return {};
    }
    out.push_back(at);
  }
  return out;
}

/// The layers under either name. Empty when there are none or (then reported) they are wrong.
pattern read_pattern(const model_file& f, const char* as_letters, const char* as_words) {
  const bool lettered = f.r.has(as_letters);
  pattern out;
  if (lettered) {
    out = read_letters(f, as_letters);
  } else {
    const value* list = f.r.raw(as_words);
    const value::array* items = list ? list->items() : nullptr;
    out = read_names(f, as_words, words, {items ? std::ssize(*items) : 0, true});
  }
  if (out.size() <= static_cast<std::size_t>(layer_range.high)) return out;
  f.r.fail(lettered ? as_letters : as_words,
           fmt::format("{} layers are more than {}", out.size(), layer_range.high));
  return {};
}

layer_spec nemotron_layer(const model_file& f, std::size_t kind) {
  layer_spec l;
  l.attention = attention_kind::none;
  l.gated_mlp = false;
  if (kind == mamba_block) {
    l.attention = attention_kind::mamba;
    l.scan.heads = f.r.integer("mamba_num_heads", head_range);
    l.scan.head_dim = f.r.integer("mamba_head_dim", head_range);
    l.scan.state = f.r.integer("ssm_state_size", head_range);
    l.scan.groups = f.r.integer("n_groups", group_range);
    l.scan.conv_kernel = f.r.integer_or("conv_kernel", default_kernel, head_range);
    l.scan.chunk = f.r.integer_or("chunk_size", scan_spec{}.chunk, head_range);
  } else if (kind == attention_block) {
    spelling names = hugging_face();
    names.head_dim = {"head_dim", {"attention_head_dim"}};
    l.attention = attention_kind::grouped_query;
    read_heads(f, names, {}, l);
  } else if (kind == mlp_block) {
    l.ffn_hidden = f.r.integer("intermediate_size", ffn_range);
  } else {
    l.moe = read_experts(f, "moe_intermediate_size");
    l.moe.shared_ffn = f.r.integer_or("moe_shared_expert_intermediate_size", 0, {0, ffn_range.high});
    l.moe.latent = f.r.find_integer("moe_latent_size", hidden_range).value_or(0);
    l.moe.balanced_by_bias = true;
  }
  return l;
}

/// Kimi's delta attention: a decay per element of the key, from projections as wide as a head.
layer_spec kda_layer(const model_file& f, const layer_spec& full) {
  layer_spec l;
  l.attention = attention_kind::linear;
  l.ffn_hidden = full.ffn_hidden;
  l.moe = full.moe;
  l.scan.chunk = delta_chunk;
  config::reader r = f.r.child("linear_attn_config");
  l.scan.heads = l.scan.key_heads = r.integer("num_heads", head_range);
  l.scan.head_dim = l.scan.state = l.scan.gate_rank = r.integer("head_dim", head_range);
  l.scan.conv_kernel = r.integer_or("short_conv_kernel_size", default_kernel, head_range);
  return l;
}

/// Latent attention where `full` says so, elsewhere delta attention.
model kda_model(const model_file& f, outline o, const std::vector<bool>& full) {
  moe_spec e = read_deepseek_experts(f);
  e.latent = f.r.find_integer("routed_expert_hidden_size", hidden_range).value_or(0);
  o.layer.attention_gate = f.r.boolean_or("mla_use_output_gate", false);
  model m = routed_model(f, o, e, deepseek_routing(f, o.layers));
  for (std::size_t i = 0; i < m.layers.size(); ++i)
    if (i < full.size() && !full[i]) m.layers[i] = kda_layer(f, m.layers[i]);
  return m;
}

}  // namespace

model read_kimi_linear(const model_file& f) {
  outline o = read_sizes(f, hugging_face());
  read_latent_attention(f, o.layer);
  std::vector<bool> full(static_cast<std::size_t>(o.layers.value), false);
  config::reader r = f.r.child("linear_attn_config");  // counts layers from 1
  for (const std::int64_t i : read_integers({f.root, r, f.problems}, "full_attn_layers", {1, o.layers.value}))
    full[static_cast<std::size_t>(i - 1)] = true;
  return kda_model(f, std::move(o), full);
}

model read_glm5_next(const model_file& f) {
  constexpr std::array<std::string_view, 2> names = {"linear_attention", "deepseek_sparse_attention"};
  outline o = read_sizes(f, hugging_face());
  read_latent_attention(f, o.layer);
  read_indexer(f, o.layer);
  o.m.residual_streams = f.r.integer_or("hc_mult", 1, group_range);
  const layer_spec latent = o.layer;
  std::vector<bool> full;
  for (const std::size_t name : read_names(f, "layer_types", names, o.layers)) full.push_back(name == 1);
  if (!f.r.has("layer_types")) f.r.fail("", "required member \"layer_types\" is missing");
  model m = kda_model(f, std::move(o), full);
  layer_spec predicting = latent;
  predicting.moe = m.layers.back().moe;
  read_mtp(f, "num_nextn_predict_layers", m, {predicting});
  return m;
}

// A table of n-grams, and an indexer in full layers. The mixing of residual streams is not counted.
model read_qwen4(const model_file& f) {
  outline o = read_qwen3_5_attention(f);
  o.layer.moe = read_experts(f, "moe_intermediate_size");
  o.layer.moe.shared_ffn = f.r.integer_or("shared_expert_intermediate_size", 0, {0, ffn_range.high});
  o.layer.index_heads = f.r.integer("indexer_n_heads", head_range);
  o.layer.index_dim = f.r.integer("indexer_head_dim", head_range);
  o.layer.sparse_keys = f.r.integer("indexer_budget", positions_range);
  o.m.residual_streams = f.r.integer_or("hc_count", 1, group_range);
  const std::int64_t base = f.r.integer_or("ngram_vocab_size_base", 0, {0, std::int64_t{1} << 36});
  const std::int64_t width = f.r.integer_or("ple_embed_dim", 0, {0, hidden_range.high});
  o.m.lookup_tables = base * width * std::ssize(read_integers(f, "ple_layer_ids", {0, layer_range.high}));
  return read_qwen3_5_layers(f, std::move(o));
}

model read_qwen3_5(const model_file& f) {
  outline o = read_qwen3_5_attention(f);
  o.layer.ffn_hidden = f.r.integer("intermediate_size", ffn_range);
  return read_qwen3_5_layers(f, std::move(o));
}

model read_qwen3_5_moe(const model_file& f) {
  outline o = read_qwen3_5_attention(f);
  o.layer.moe = read_experts(f, "moe_intermediate_size");
  o.layer.moe.shared_ffn = f.r.integer_or("shared_expert_intermediate_size", 0, {0, ffn_range.high});
  return read_qwen3_5_layers(f, std::move(o));
}

model read_nemotron_h(const model_file& f) {
  const pattern main = read_pattern(f, "hybrid_override_pattern", "layers_block_type");
  const pattern predicting = read_pattern(f, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  model m;
  m.hidden = f.r.integer("hidden_size", hidden_range);
  m.vocab = f.r.integer("vocab_size", vocab_range);
  m.max_positions = f.r.find_integer("max_position_embeddings", positions_range).value_or(0);
  m.tied_embeddings = read_tied(f);
  if (!f.r.has("hybrid_override_pattern") && !f.r.has("layers_block_type"))
    f.r.fail("", "required member \"hybrid_override_pattern\" is missing (nor \"layers_block_type\")");
  const auto stated = f.r.find_integer("num_hidden_layers", layer_range);
  const bool given = f.r.has("hybrid_override_pattern") || f.r.has("layers_block_type");
  if (stated && given && *stated != std::ssize(main))
    f.r.fail("num_hidden_layers",
             fmt::format("{} differs from the {} layers of the pattern", *stated, main.size()));
  std::array<std::optional<layer_spec>, block_kinds> kinds;
  const auto layers_of = [&](const pattern& p) {
    std::vector<layer_spec> out;
    for (const std::size_t kind : p) {
      if (!kinds[kind]) kinds[kind] = nemotron_layer(f, kind);
      out.push_back(*kinds[kind]);
    }
    return out;
  };
  m.layers = layers_of(main);
  read_mtp(f, "num_nextn_predict_layers", m, layers_of(predicting));
  if (m.mtp_layers > 0 && !f.r.has("mtp_hybrid_override_pattern") && !f.r.has("mtp_layers_block_type"))
    f.r.fail("", "required member \"mtp_hybrid_override_pattern\" is missing (nor \"mtp_layers_block_type\")");
  return m;
}

}  // namespace nvlsim
