#include "model/weights.hpp"

namespace nvlsim {
namespace {

std::int64_t matrices(const layer_spec& l) { return l.gated_mlp ? 3 : 2; }

std::int64_t grouped_query_projections(const model& m, const layer_spec& l) {
  return m.hidden * (query_width(l) + projected_kv(l) + gate_width(l) + l.heads * value_dim(l));
}

std::int64_t mla_projections(const model& m, const layer_spec& l) {
  const mla_spec& a = l.mla;
  const std::int64_t queries = l.heads * (a.qk_nope_dim + a.qk_rope_dim);
  const std::int64_t to_queries = a.q_lora_rank > 0 ? a.q_lora_rank * (m.hidden + queries) : m.hidden * queries;
  const std::int64_t to_keys_and_values =
      m.hidden * (a.kv_lora_rank + a.qk_rope_dim) + a.kv_lora_rank * l.heads * (a.qk_nope_dim + a.v_head_dim);
  return to_queries + to_keys_and_values + (l.heads * a.v_head_dim + gate_width(l)) * m.hidden;
}

/// Two projections, of values and of their gate. With an indexer, blocks overlap and the projections are twice as
/// wide.
std::int64_t compressor_projections(const model& m, const layer_spec& l, std::int64_t width) {
  if (l.compressed.ratio <= 1) return 0;
  return 2 * m.hidden * width * (l.sparse_keys > 0 ? 2 : 1);
}

std::int64_t compressed_projections(const model& m, const layer_spec& l) {
  const compressed_spec& c = l.compressed;
  const std::int64_t to_queries = c.q_lora_rank * (m.hidden + query_width(l));
  const std::int64_t output = query_width(l) * c.o_lora_rank + c.o_groups * c.o_lora_rank * m.hidden;
  const std::int64_t keys = m.hidden * l.head_dim;
  if (l.kv == kv_source::shared) return to_queries + keys + output;
  return to_queries + keys + output + compressor_projections(m, l, l.head_dim);
}

/// Queries, keys and head weights.
std::int64_t indexer_projections(const model& m, const layer_spec& l) {
  if (l.index_heads == 0) return 0;
  const bool compressed = l.attention == attention_kind::compressed;
  const std::int64_t rank = compressed ? l.compressed.q_lora_rank : l.mla.q_lora_rank;
  const std::int64_t keys = compressed ? compressor_projections(m, l, l.index_dim) : m.hidden * l.index_dim;
  // Grouped heads choose whole blocks by their best score, without a weight per head.
  const std::int64_t weights = l.attention == attention_kind::grouped_query ? 0 : m.hidden * l.index_heads;
  return (rank > 0 ? rank : m.hidden) * l.index_heads * l.index_dim + keys + weights;
}

/// Queries and keys, values and their output gate, and two scalars per head; then the output. With vectors of
/// decay, they and the output gate have a low rank.
std::int64_t linear_projections(const model& m, const scan_spec& s) {
  if (s.gate_rank > 0)
    return m.hidden * (2 * s.key_heads * s.state + 2 * scan_width(s) + s.heads) +
           2 * s.gate_rank * (m.hidden + scan_width(s));
  return m.hidden * (2 * s.key_heads * s.state + 2 * scan_width(s) + 2 * s.heads + scan_width(s));
}

/// Gate and input, B and C of every group, a step per head; then the output.
std::int64_t mamba_projections(const model& m, const scan_spec& s) {
  return m.hidden * (2 * scan_width(s) + 2 * s.groups * s.state + s.heads + scan_width(s));
}

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

std::int64_t mixer_projections(const model& m, const layer_spec& l) {
  switch (l.attention) {
    case attention_kind::none:
      return 0;
    case attention_kind::mamba:
      return mamba_projections(m, l.scan);
    case attention_kind::linear:
      return linear_projections(m, l.scan);
    case attention_kind::mla:
      return mla_projections(m, l) + indexer_projections(m, l);
    case attention_kind::compressed:
      return compressed_projections(m, l) + indexer_projections(m, l);
    case attention_kind::grouped_query:
      break;
  }
  return grouped_query_projections(m, l) + indexer_projections(m, l);
}

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

std::int64_t mlp_weights(const model& m, const layer_spec& l) {
  // The input of a layer is projected from the embedding, gated from the hidden state and projected to it.
  const std::int64_t inputs = 3 * m.hidden * l.layer_input;
  if (!l.routed()) return inputs + matrices(l) * m.hidden * l.ffn_hidden;
  return inputs + matrices(l) * m.hidden * l.moe.shared_ffn + 2 * m.hidden * l.moe.latent;
}

std::int64_t router_weights(const model& m, const layer_spec& l) { return m.hidden * l.moe.experts; }

std::int64_t expert_weights(const model& m, const layer_spec& l) {
  return matrices(l) * (l.moe.latent > 0 ? l.moe.latent : m.hidden) * l.moe.expert_ffn;
}

}  // namespace nvlsim
