// Models of DeepSeek, and models derived from them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/families.hpp"

namespace nvlsim {

void read_latent_attention(const model_file& f, layer_spec& l) {
  l.attention = attention_kind::mla;
  l.heads = l.kv_heads = f.r.integer("num_attention_heads", head_range);
  l.mla.q_lora_rank = f.r.find_integer("q_lora_rank", lora_rank_range).value_or(0);
  l.mla.kv_lora_rank = f.r.integer("kv_lora_rank", lora_rank_range);
  l.mla.qk_nope_dim = f.r.integer("qk_nope_head_dim", head_range);
  l.mla.qk_rope_dim = f.r.integer("qk_rope_head_dim", {0, head_range.high});
  l.mla.v_head_dim = f.r.integer("v_head_dim", head_range);
  l.head_dim = l.mla.qk_nope_dim + l.mla.qk_rope_dim;
}

void read_indexer(const model_file& f, layer_spec& l) {
  l.sparse_keys = f.r.integer("index_topk", positions_range);
  l.index_heads = f.r.integer("index_n_heads", head_range);
  l.index_dim = f.r.integer("index_head_dim", head_range);
}

moe_spec read_deepseek_experts(const model_file& f) {
  moe_spec e = read_experts(f, "moe_intermediate_size");
  static const config::key shared = {"n_shared_experts", {"num_shared_experts"}};
  e.shared_ffn = e.expert_ffn * f.r.integer_or(shared, 0, shared_range);
  static const std::array<std::string, 3> methods = {"greedy", "group_limited_greedy",
                                                     "noaux_tc"};  // of DeepSeek-V2 and V3
  e.balanced_by_bias = f.r.one_of_or("topk_method", methods, 2) == 2;
  read_expert_groups(f, "n_group", "topk_group", e);
  return e;
}

/// Which layers have routed experts.
std::vector<bool> deepseek_routing(const model_file& f, checked layers) {
  constexpr std::array<std::string_view, 2> names = {"dense", "sparse"};
  std::vector<bool> out;
  for (const std::size_t name : read_names(f, "mlp_layer_types", names, layers)) out.push_back(name == 1);
  const std::int64_t dense = f.r.integer_or("first_k_dense_replace", 0, {0, layer_range.high});
  if (const auto digits = read_digits(f, "moe_layer_freq", layers); !digits.empty()) return digits;
  const std::int64_t every = f.r.integer_or("moe_layer_freq", 1, layer_range);
  for (std::int64_t i = std::ssize(out); i < layers.value; ++i) out.push_back(i >= dense && i % every == 0);
  return out;
}

namespace {

constexpr std::int64_t indexed_ratio =
    4;  // DeepSeek-V4 chooses among keys where it pools four, its overlapping blocks

outline read_deepseek(const model_file& f, bool sparse) {
  outline o = read_sizes(f, hugging_face());
  read_latent_attention(f, o.layer);
  if (sparse) read_indexer(f, o.layer);
  layer_spec routed = o.layer;
  routed.moe = read_deepseek_experts(f);
  const auto routing = deepseek_routing(f, o.layers);
  if (std::find(routing.begin(), routing.end(), false) != routing.end())
    o.layer.ffn_hidden = f.r.integer("intermediate_size", ffn_range);
  for (const bool r : routing) o.m.layers.push_back(r ? routed : o.layer);
  o.m.tied_embeddings = read_tied(f);
  read_mtp(f, "num_nextn_predict_layers", o.m, {o.m.layers.back()});
  return o;
}

layer_spec with_ratio(layer_spec l, std::int64_t ratio) {
  l.compressed.ratio = ratio;
  if (ratio != indexed_ratio) l.sparse_keys = l.index_heads = l.index_dim = 0;
  return l;
}

}  // namespace

model read_deepseek_v3(const model_file& f) { return read_deepseek(f, false).m; }

model read_deepseek_v32(const model_file& f) {
  outline o = read_deepseek(f, true);
  constexpr std::array<std::string_view, 2> names = {"full", "shared"};
  const auto types = read_names(f, "indexer_types", names, o.layers);
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] == 1) o.m.layers[i].index_heads = o.m.layers[i].index_dim = 0;
  return o.m;
}

namespace {

outline read_compressed(const model_file& f) {
  outline o = read_sizes(f, hugging_face());
  layer_spec& l = o.layer;
  l.attention = attention_kind::compressed;
  l.heads = f.r.integer("num_attention_heads", head_range);
  l.kv_heads = f.r.integer("num_key_value_heads", {1, 1});
  l.head_dim = f.r.integer("head_dim", head_range);
  l.compressed.q_lora_rank = f.r.integer("q_lora_rank", lora_rank_range);
  l.compressed.o_lora_rank = f.r.integer("o_lora_rank", lora_rank_range);
  l.compressed.o_groups = f.r.integer("o_groups", group_range);
  l.window = f.r.integer("sliding_window", positions_range);
  read_indexer(f, l);
  l.moe = read_deepseek_experts(f);
  o.m.tied_embeddings = read_tied(f);
  o.m.residual_streams = f.r.integer_or("hc_mult", 1, group_range);
  return o;
}

/// The ratio of each layer; the list may continue with those of prediction modules.
std::vector<std::int64_t> read_ratios(const model_file& f, checked layers) {
  auto ratios = read_integers(f, "compress_ratios", {0, head_range.high});
  const auto n = static_cast<std::size_t>(layers.value);
  if (!f.r.has("compress_ratios")) f.r.fail("", "required member \"compress_ratios\" is missing");
  else if (layers.sound && ratios.size() < n)
    f.r.fail("compress_ratios", fmt::format("has {} elements for {} layers", ratios.size(), n));
  ratios.resize(std::max(ratios.size(), n + 1));
  return ratios;
}

bool contains(const std::vector<std::int64_t>& list, std::int64_t i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

}  // namespace

model read_deepseek_v4(const model_file& f) {
  outline o = read_compressed(f);
  const auto ratios = read_ratios(f, o.layers);
  const auto layers = static_cast<std::size_t>(o.layers.value);
  for (std::size_t i = 0; i < layers; ++i) o.m.layers.push_back(with_ratio(o.layer, ratios[i]));
  read_mtp(f, "num_nextn_predict_layers", o.m, {with_ratio(o.layer, ratios[layers])});
  return o.m;
}

// Pooled keys, and choices of them, come from a few layers; tables of n-grams add to the hidden state; the
// predicting layers have fewer experts. Candidates of blocks, which narrow a choice, are not modelled.
model read_deepseek_v41(const model_file& f) {
  outline o = read_compressed(f);
  const auto ratios = read_ratios(f, o.layers);
  constexpr config::range<std::int64_t> ids{0, layer_range.high};
  const auto keys = read_integers(f, "kv_source_layer_ids", ids);
  const auto choices = read_integers(f, "index_source_layer_ids", ids);
  for (std::int64_t i = 0; i < o.layers.value; ++i) {
    layer_spec l = o.layer;
    l.compressed.ratio = ratios[static_cast<std::size_t>(i)];
    if (l.compressed.ratio == 0) l.sparse_keys = 0;
    else if (!keys.empty() && !contains(keys, i)) l.kv = kv_source::shared;
    if (l.compressed.ratio == 0 || (!choices.empty() && !contains(choices, i))) l.index_heads = l.index_dim = 0;
    o.m.layers.push_back(l);
  }
  constexpr config::range<std::int64_t> rows{1, std::int64_t{1} << 36};
  const std::int64_t width = f.r.integer_or("engram_head_dim", 0, {0, head_range.high});
  for (const std::int64_t n : read_integers(f, "engram_num_embeddings", rows)) o.m.lookup_tables += n * width;
  layer_spec predicting = with_ratio(o.layer, 0);
  predicting.moe.experts = f.r.integer_or("dspark_n_routed_experts", o.layer.moe.experts, expert_range);
  predicting.moe.top_k = f.r.integer_or("dspark_num_experts_per_tok", o.layer.moe.top_k, expert_range);
  read_mtp(f, "num_nextn_predict_layers", o.m, {predicting});
  return o.m;
}

}  // namespace nvlsim
