#include "nvlsim/layers/layer_slices.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nvlsim {
namespace {

/// Projections of an indexer: queries from `from` values, keys of `key_width`, and a weight per head.
void add_indexer(layer_slice& s, double from, double key_width, double hidden) {
  if (s.spec.index_heads == 0) return;
  const auto heads = static_cast<double>(s.spec.index_heads), dim = static_cast<double>(s.spec.index_dim);
  s.before_attention.push_back({"indexer queries", weight_role::attention, heads * dim, from});
  // Grouped heads choose blocks by their best score, without a weight per head.
  const double weights = s.spec.attention == attention_kind::grouped_query ? 0 : heads;
  s.before_attention.push_back({"indexer keys", weight_role::attention, key_width + weights, hidden});
}

void add_attention(layer_slice& s, double hidden, double tp) {
  const layer_spec& l = s.spec;
  if (l.attention == attention_kind::grouped_query) {
    const std::int64_t of_head = l.kv_heads > 0 ? projected_kv(l) / l.kv_heads : 0;
    const double kv = s.kv_heads * static_cast<double>(of_head), gate = static_cast<double>(gate_width(l)) / tp;
    s.before_attention.push_back({"qkv", weight_role::attention, s.heads * s.head_dim + kv + gate, hidden});
    add_indexer(s, hidden, static_cast<double>(l.index_dim), hidden);
    s.after_attention.push_back({"attn out", weight_role::attention, hidden, s.heads * s.value_dim()});
  } else if (l.attention == attention_kind::mla) {
    const mla_spec& a = l.mla;
    const auto latent = static_cast<double>(a.kv_lora_rank), rope = static_cast<double>(a.qk_rope_dim);
    const auto nope = static_cast<double>(a.qk_nope_dim), value = static_cast<double>(a.v_head_dim);
    const auto query = static_cast<double>(a.q_lora_rank);
    const double gate = static_cast<double>(gate_width(l)) / tp;
    s.before_attention.push_back({"latents", weight_role::attention, query + latent + rope + gate, hidden});
    s.before_attention.push_back(
        {"queries", weight_role::attention, s.heads * (nope + rope), query > 0 ? query : hidden});
    s.before_attention.push_back({"absorption", weight_role::attention, s.heads * (nope + value), latent});
    add_indexer(s, query > 0 ? query : hidden, static_cast<double>(l.index_dim), hidden);
    s.after_attention.push_back({"attn out", weight_role::attention, hidden, s.heads * value});
  } else if (l.attention == attention_kind::compressed) {
    const compressed_spec& c = l.compressed;
    const auto rank = static_cast<double>(c.q_lora_rank), groups = static_cast<double>(c.o_groups),
               o_rank = static_cast<double>(c.o_lora_rank);
    const double overlap = l.sparse_keys > 0 ? 2 : 1;  // the blocks of an indexer overlap
    const double pooled = c.ratio > 1 && l.kv == kv_source::own ? 2 * s.head_dim * overlap : 0;
    s.before_attention.push_back({"latents", weight_role::attention, rank + s.head_dim + pooled, hidden});
    s.before_attention.push_back({"queries", weight_role::attention, s.heads * s.head_dim, rank});
    add_indexer(s, rank, c.ratio > 1 ? 2 * static_cast<double>(l.index_dim) * overlap : 0, hidden);
    s.after_attention.push_back({"attn out down", weight_role::attention, groups / tp * o_rank,
                                 static_cast<double>(l.heads) * s.head_dim / groups});
    s.after_attention.push_back({"attn out", weight_role::attention, hidden, groups / tp * o_rank});
  } else if (l.attention == attention_kind::mamba) {
    const scan_spec& r = l.scan;
    const double width = static_cast<double>(r.heads * r.head_dim) / tp;
    const double rest = static_cast<double>(2 * r.groups * r.state + r.heads) / tp;
    s.before_attention.push_back({"qkv", weight_role::attention, 2 * width + rest, hidden});
    s.after_attention.push_back({"attn out", weight_role::attention, hidden, width});
  } else if (l.attention == attention_kind::linear) {
    const scan_spec& r = l.scan;
    const auto keys = static_cast<double>(r.key_heads * r.state) / tp,
               values = static_cast<double>(r.heads * r.head_dim) / tp;
    const auto rank = static_cast<double>(r.gate_rank);
    s.before_attention.push_back(
        {"qkv", weight_role::attention, 2 * keys + (rank > 0 ? values + 2 * rank : 2 * values), hidden});
    if (rank > 0) s.before_attention.push_back({"gates", weight_role::attention, 2 * values, rank});
    s.after_attention.push_back({"attn out", weight_role::attention, hidden, values});
  }
}

void add_mlp(layer_slice& s, double hidden, rank_layout r) {
  const layer_spec& l = s.spec;
  if (l.layer_input > 0) {
    const auto input = static_cast<double>(l.layer_input);
    s.after_attention.push_back({"layer input", weight_role::dense, 2 * input, hidden});
    s.after_attention.push_back({"layer input out", weight_role::dense, hidden, input});
  }
  if (s.ffn > 0) {
    s.after_attention.push_back({"mlp up", weight_role::dense, s.up_width(), hidden});
    s.after_attention.push_back({"mlp down", weight_role::dense, hidden, s.ffn});
  }
  if (!l.routed()) return;
  s.expert_ranks = r.ep;
  s.local_experts = std::ceil(static_cast<double>(l.moe.experts) / r.ep);
  s.expert_ffn = static_cast<double>(l.moe.expert_ffn) / std::max(1, r.ranks / r.ep);
  // If ranks keep their own sequences, their experts get the tokens of all ranks.
  s.routed_width = static_cast<double>(l.moe.top_k) * r.ranks / r.tp / r.ep * s.expert_ffn +
                   static_cast<double>(l.moe.shared_ffn) / r.tp;
  s.after_attention.push_back({"router", weight_role::sixteen_bit, static_cast<double>(l.moe.experts), hidden});
  if (l.moe.latent > 0) {
    const auto latent = static_cast<double>(l.moe.latent);
    s.after_attention.push_back({"latent down", weight_role::dense, latent, hidden});
    s.after_attention.push_back({"latent up", weight_role::dense, hidden, latent});
  }
  if (l.moe.shared_ffn > 0) {
    const double shared = static_cast<double>(l.moe.shared_ffn) / r.tp;
    s.after_attention.push_back({"shared up", weight_role::dense, (l.gated_mlp ? 2 : 1) * shared, hidden});
    s.after_attention.push_back({"shared down", weight_role::dense, hidden, shared});
  }
}

}  // namespace

int layer_slice::blocks() const {
  return (spec.attention != attention_kind::none ? 1 : 0) + (spec.routed() || spec.ffn_hidden > 0 ? 1 : 0);
}

double layer_slice::gemm_weights(double hidden) const {
  double all = expert_weights(hidden);
  for (const auto* part : {&before_attention, &after_attention})
    for (const rank_gemm& g : *part) all += g.n * g.k;
  return all;
}

double layer_slice::kv_values() const {
  if (spec.attention == attention_kind::mla)
    return static_cast<double>(spec.mla.kv_lora_rank + spec.mla.qk_rope_dim + spec.index_dim);
  const bool own = spec.kv != kv_source::shared;
  if (spec.attention == attention_kind::compressed && spec.compressed.ratio > 0)
    return ((own ? head_dim : 0) + static_cast<double>(spec.index_dim)) /
           static_cast<double>(spec.compressed.ratio);
  if (spec.attention != attention_kind::grouped_query) return 0;
  return (own ? kv_heads * (head_dim + value_dim()) : 0) + static_cast<double>(spec.index_dim);
}

std::vector<layer_slice> slice_layers(const model& m, rank_layout r) {
  return slice_layers(m.layers, m.hidden, r);
}

std::vector<layer_slice> slice_layers(const std::vector<layer_spec>& layers, std::int64_t hidden, rank_layout r) {
  std::vector<std::pair<layer_spec, int>> counts;
  for (const layer_spec& l : layers) {
    const auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == l; });
    if (same != counts.end()) same->second += 1;
    else counts.emplace_back(l, 1);
  }
  const double tp = r.tp;
  std::vector<layer_slice> out;
  out.reserve(counts.size());
  for (const auto& [l, n] : counts) {
    layer_slice s;
    s.layers = n;
    s.spec = l;
    s.heads = static_cast<double>(s.scans() ? l.scan.heads : l.heads) / tp;
    s.kv_heads = std::max(static_cast<double>(l.kv_heads) / tp, 1.0);
    s.head_dim = static_cast<double>(l.head_dim);
    s.ffn = static_cast<double>(l.ffn_hidden) / tp;
    s.gated = l.gated_mlp;
    s.state_bytes = state_bytes(l, r.state) / tp;
    add_attention(s, static_cast<double>(hidden), tp);
    add_mlp(s, static_cast<double>(hidden), r);
    out.push_back(std::move(s));
  }
  return out;
}

double fullest_stage(const model& m, int pp) {
  const auto layers = static_cast<double>(m.layers.size());
  return std::ceil(layers / pp) / layers;
}

}  // namespace nvlsim
