// FLOPs of training. [docs/models-and-assumptions.md#flops]
#include <algorithm>
#include <cmath>

#include "model/weights.hpp"
#include "nvlsim/model/attended_keys.hpp"

namespace nvlsim {
namespace {

constexpr double passes = 3;           // forward, and backward to inputs and to weights
constexpr double mamba_scan_flop = 7;  // forward, per element of the state and token

struct attended {
  std::int64_t sequence = 0;
  bool causal = true;
  bool windows = true;  // whether windows reduce the count

  double half(double keys) const { return causal ? keys / 2 : keys; }
  double chosen(double keys, double available) const {
    return causal ? chosen_keys(keys, available) : std::min(keys, available);
  }
};

/// Mean number of keys per query over the sequence, as Megatron-Bridge counts them: without the query itself, and
/// all keys of a window from its start.
double counted_keys(const layer_spec& l, const attended& a) {
  const auto s = static_cast<double>(a.sequence), window = static_cast<double>(l.window);
  const auto chosen = static_cast<double>(l.sparse_keys);
  if (l.attention == attention_kind::compressed) {
    const double pooled = l.compressed.ratio > 0 ? std::floor(s / static_cast<double>(l.compressed.ratio)) : 0;
    return std::min(s, window) + (l.sparse_keys > 0 ? a.chosen(chosen, pooled) : a.half(pooled));
  }
  const double seen = l.window > 0 && a.windows ? std::min(s, window) : s;
  return l.sparse_keys > 0 ? a.chosen(chosen, seen) : a.half(seen);
}

/// Multiply-adds per key, for the score and for its product with the value.
double pair_cost(const layer_spec& l) {
  if (l.attention == attention_kind::mla)
    return static_cast<double>(l.heads * (l.mla.qk_nope_dim + l.mla.qk_rope_dim + l.mla.v_head_dim));
  return static_cast<double>(query_width(l) + l.heads * value_dim(l));
}

/// Multiply-adds of the mixer without its projections.
double mixing_cost(const layer_spec& l, const attended& a) {
  const scan_spec& s = l.scan;
  switch (l.attention) {
    case attention_kind::none:
      return 0;
    case attention_kind::mamba:
      return mamba_scan_flop / 2 * static_cast<double>(scan_width(s) * s.state);
    case attention_kind::linear:  // four products with the state
      return static_cast<double>(convolution_weights(l) + 4 * scan_width(s) * s.state);
    case attention_kind::grouped_query:
    case attention_kind::mla:
    case attention_kind::compressed:
      break;
  }
  const std::int64_t indexed_keys = a.sequence / std::max<std::int64_t>(1, l.compressed.ratio);
  const double indexed = static_cast<double>(l.index_heads * l.index_dim) * static_cast<double>(indexed_keys);
  return pair_cost(l) * counted_keys(l, a) + indexed + static_cast<double>(rank_norm_weights(l));
}

double layer_cost(const model& m, const layer_spec& l, const attended& a, flop_rules rules) {
  layer_spec counted = l;
  if (rules == flop_rules::before_26_06 && l.biased_clamped_activation) counted.gated_mlp = false;
  const matrix_counts of = count_matrices(counted, m.hidden);
  const std::int64_t experts = std::max<std::int64_t>(1, counted.moe.experts);
  const std::int64_t weights =
      of[matrix_part::mixer] + of[matrix_part::mlp] + of[matrix_part::experts] / experts * counted.moe.top_k;
  double cost = static_cast<double>(weights) + mixing_cost(counted, a);
  if (l.attention == attention_kind::mamba) {  // Megatron-Bridge assumes a width of 2h, regardless of heads
    const double wider = 2 * static_cast<double>(m.hidden) - static_cast<double>(scan_width(l.scan));
    cost += wider * (3 * static_cast<double>(m.hidden) + mamba_scan_flop / 2 * static_cast<double>(l.scan.state));
  }
  return cost;
}

}  // namespace

double training_flops_per_token(const model& m, std::int64_t sequence, bool causal, flop_rules rules) {
  const attended a{sequence, causal, rules == flop_rules::since_26_06};
  const auto h = static_cast<double>(m.hidden), depths = static_cast<double>(m.mtp_layers);
  double multiply_adds = h * static_cast<double>(m.vocab) * (1 + depths) + depths * (3 * h + 2 * h * h);
  for (const layer_spec& l : m.layers) multiply_adds += layer_cost(m, l, a, rules);
  for (const layer_spec& l : m.mtp_block) multiply_adds += depths * layer_cost(m, l, a, rules);
  return 2 * passes * multiply_adds;
}

}  // namespace nvlsim
