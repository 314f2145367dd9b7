#include "nvlsim/layers/layer_slices.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nvlsim/model/matrices.hpp"

namespace nvlsim {
namespace {

weight_role role_of(matrix_part p) {
  if (p == matrix_part::mixer) return weight_role::attention;
  return p == matrix_part::router ? weight_role::sixteen_bit : weight_role::dense;
}

/// The GEMMs of all matrices but those of routed experts.
void add_gemms(layer_slice& s, std::int64_t hidden, double tp) {
  bool after = false;
  matrix first = matrix::query;  // of the last GEMM
  for (const weight_matrix& w : layer_matrices(s.spec, hidden)) {
    if (w.part == matrix_part::experts) continue;
    after = after || w.part != matrix_part::mixer || w.by == divided::inputs || w.name == matrix::output_down;
    std::vector<rank_gemm>& gemms = after ? s.after_attention : s.before_attention;
    const rank_matrix r = on_rank(w, tp);
    if (w.joined) {
      gemms.back().n += r.groups * r.out;
      gemms.back().name = gemm_name(first, true);
    } else {
      first = w.name;
      gemms.push_back({gemm_name(first), role_of(w.part), r.groups * r.out, r.in});
    }
  }
}

void add_experts(layer_slice& s, rank_layout r) {
  const moe_spec& x = s.spec.moe;
  s.expert_ranks = r.ep;
  s.local_experts = std::ceil(static_cast<double>(x.experts) / r.ep);
  s.expert_ffn = static_cast<double>(x.expert_ffn) / std::max(1, r.ranks / r.ep);
  // If ranks keep their own sequences, their experts get the tokens of all ranks.
  s.routed_width = static_cast<double>(x.top_k) * r.ranks / r.tp / r.ep * s.expert_ffn +
                   static_cast<double>(x.shared_ffn) / r.tp;
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
    add_gemms(s, hidden, tp);
    if (l.routed()) add_experts(s, r);
    out.push_back(std::move(s));
  }
  return out;
}

double fullest_stage(const model& m, int pp) {
  const auto layers = static_cast<double>(m.layers.size());
  return std::ceil(layers / pp) / layers;
}

}  // namespace nvlsim
