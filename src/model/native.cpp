// Models without a config.json, with the names of Megatron-LM.
#include <fmt/format.h>

#include <algorithm>

#include "model/families.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

const spelling& megatron() {
  static const spelling names = {"num_layers",       "hidden_size", "num_attention_heads",
                                 "num_query_groups", "kv_channels", true};
  return names;
}

/// Latent attention, if the low rank of keys and values is given.
void read_attention(const model_file& f, outline& o) {
  layer_spec& l = o.layer;
  if (!f.r.has("kv_lora_rank")) {
    read_heads(f, megatron(), o.hidden, l);
    if (f.r.boolean_or("qk_layernorm", false)) l.qk_norm = qk_norm_kind::per_head;
    return;
  }
  l.attention = attention_kind::mla;
  l.heads = l.kv_heads = f.r.integer("num_attention_heads", head_range);
  l.mla.q_lora_rank = f.r.find_integer("q_lora_rank", lora_rank_range).value_or(0);
  l.mla.kv_lora_rank = f.r.integer("kv_lora_rank", lora_rank_range);
  l.mla.qk_nope_dim = f.r.integer("qk_head_dim", head_range);
  l.mla.qk_rope_dim = f.r.integer("qk_pos_emb_head_dim", head_range);
  l.mla.v_head_dim = f.r.integer("v_head_dim", head_range);
  l.head_dim = l.mla.qk_nope_dim + l.mla.qk_rope_dim;
}

moe_spec read_routed(const model_file& f) {
  moe_spec e;
  const checked count = read_integer(f, "num_moe_experts", expert_range);
  const checked chosen = read_integer(f, "moe_router_topk", expert_range);
  if (count.sound && chosen.sound && chosen.value > count.value)
    f.r.fail("moe_router_topk", fmt::format("{} is more than the {} experts", chosen.value, count.value));
  e.experts = count.value;
  e.top_k = chosen.value;
  e.expert_ffn = f.r.integer("moe_ffn_hidden_size", expert_ffn_range);
  e.shared_ffn = f.r.integer_or("moe_shared_expert_intermediate_size", 0, {0, ffn_range.high});
  e.balanced_by_bias = f.r.boolean_or("moe_router_enable_expert_bias", false);
  read_expert_groups(f, "moe_router_num_groups", "moe_router_group_topk", e);
  return e;
}

/// The layers with routed experts: every n-th, beginning with the first, or one digit per layer.
std::vector<bool> read_routing(const model_file& f, checked layers) {
  std::vector<bool> out = read_digits(f, "moe_layer_freq", layers);
  if (!out.empty()) return out;
  const auto n = static_cast<std::size_t>(layers.value);
  const auto every = static_cast<std::size_t>(f.r.integer_or("moe_layer_freq", 1, layer_range));
  for (std::size_t i = 0; i < n; ++i) out.push_back(i % every == 0);
  return out;
}

void read_layers(const model_file& f, outline& o) {
  o.layer.gated_mlp = f.r.boolean("gated_mlp");
  layer_spec routed = o.layer;
  std::vector<bool> routing(static_cast<std::size_t>(o.layers.value), false);
  if (f.r.has("num_moe_experts")) {
    routed.moe = read_routed(f);
    routing = read_routing(f, o.layers);
  }
  if (std::find(routing.begin(), routing.end(), false) != routing.end() || f.r.has("ffn_hidden_size"))
    o.layer.ffn_hidden = f.r.integer("ffn_hidden_size", ffn_range);
  for (const bool r : routing) o.m.layers.push_back(r ? routed : o.layer);
}

void read_windows(const model_file& f, model& m) {
  const auto window = f.r.find_integer("sliding_window", positions_range);
  if (!window) return;
  const auto full_every = f.r.find_integer("window_attn_skip_freq", layer_range);
  for (std::size_t i = 0; i < m.layers.size(); ++i)
    if (!full_every || (static_cast<std::int64_t>(i) + 1) % *full_every != 0) m.layers[i].window = *window;
}

}  // namespace

model read_native(config::reader& r, const diagnostics& problems) {
  const bool readable = r.raw("schema")->string();
  const std::string schema = r.string("schema");
  if (schema != native_schema) {
    if (readable) r.fail("schema", fmt::format("expected \"{}\", found {}", native_schema, in_quotes(schema)));
    return {};
  }
  r.ignore("base");
  r.ignore("source");
  const model_file f{r, r, problems};
  outline o = read_sizes(f, megatron());
  read_attention(f, o);
  read_layers(f, o);
  read_windows(f, o.m);
  o.m.model_type = "gpt";
  o.m.tied_embeddings = r.boolean("tied_embeddings");
  read_mtp(f, "mtp_num_layers", o.m, {o.m.layers.back()});
  r.done();
  return o.m;
}

}  // namespace nvlsim
