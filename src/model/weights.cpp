#include "model/weights.hpp"

namespace nvlsim {
namespace {

std::int64_t mixer_norms(const layer_spec& l) {
  switch (l.attention) {
    case attention_kind::none:
      return 0;
    case attention_kind::mamba:
      return scan_width(l.scan);
    case attention_kind::linear:
      return l.scan.head_dim;
    case attention_kind::compressed:
      return rank_norm_weights(l) + (l.compressed.ratio > 0 ? l.head_dim : 0) + l.index_dim;
    case attention_kind::mla:
      return rank_norm_weights(l) + l.index_dim;
    case attention_kind::grouped_query:
      break;
  }
  switch (l.qk_norm) {
    case qk_norm_kind::none:
      return 0;
    case qk_norm_kind::per_head:
      return 2 * l.head_dim;
    case qk_norm_kind::joint:
      break;
  }
  return query_width(l) + l.kv_heads * l.head_dim;
}

}  // namespace

std::int64_t query_width(const layer_spec& l) { return l.heads * l.head_dim; }
std::int64_t value_dim(const layer_spec& l) { return l.v_head_dim > 0 ? l.v_head_dim : l.head_dim; }

std::int64_t projected_kv(const layer_spec& l) {
  switch (l.kv) {
    case kv_source::shared:
      return 0;
    case kv_source::keys_are_values:
      return l.kv_heads * l.head_dim;
    case kv_source::own:
      break;
  }
  return l.kv_heads * (l.head_dim + value_dim(l));
}

std::int64_t gate_width(const layer_spec& l) {
  if (l.head_gate) return l.heads;
  if (!l.attention_gate) return 0;
  return l.attention == attention_kind::mla ? l.heads * l.mla.v_head_dim : query_width(l);
}

std::int64_t scan_width(const scan_spec& s) { return s.heads * s.head_dim; }

std::int64_t convolution_weights(const layer_spec& l) {
  const scan_spec& s = l.scan;
  if (l.attention == attention_kind::mamba) return s.conv_kernel * (scan_width(s) + 2 * s.groups * s.state);
  if (l.attention == attention_kind::linear) return s.conv_kernel * (scan_width(s) + 2 * s.key_heads * s.state);
  return 0;
}

std::int64_t rank_norm_weights(const layer_spec& l) {
  if (l.attention == attention_kind::mla) return l.mla.q_lora_rank + l.mla.kv_lora_rank;
  if (l.attention == attention_kind::compressed) return l.compressed.q_lora_rank + l.head_dim;
  return 0;
}

std::int64_t norm_weights(const model& m, const layer_spec& l) {
  const int blocks = (l.attention != attention_kind::none ? 1 : 0) + (l.routed() || l.ffn_hidden > 0 ? 1 : 0);
  const std::int64_t inputs = l.layer_input > 0 ? m.hidden : 0;
  return (l.post_norms ? 2 : 1) * blocks * m.hidden + inputs + mixer_norms(l);
}

matrix_counts count_matrices(const layer_spec& l, std::int64_t hidden) {
  matrix_counts all;
  for (const weight_matrix& w : layer_matrices(l, hidden)) all[w.part] += w.parameters();
  return all;
}

}  // namespace nvlsim
