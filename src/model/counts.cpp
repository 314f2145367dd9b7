#include "nvlsim/model.hpp"

namespace nvlsim {
namespace {

std::int64_t query_width(const layer_spec& l) { return l.heads * l.head_dim; }
std::int64_t kv_width(const layer_spec& l) { return l.kv_heads * l.head_dim; }

/// Q, K, V and output projections.
std::int64_t attention_weights(const model& m, const layer_spec& l) {
  return 2 * m.hidden * (query_width(l) + kv_width(l));
}

std::int64_t mlp_weights(const model& m, const layer_spec& l) {
  return (l.gated_mlp ? 3 : 2) * m.hidden * l.ffn_hidden;
}

std::int64_t norm_weights(const model& m, const layer_spec& l) {
  return 2 * m.hidden + (l.qk_norm ? 2 * l.head_dim : 0);
}

/// Keys a query attends to, on average over the sequence.
double mean_keys(std::int64_t sequence, bool causal) {
  return static_cast<double>(sequence) / (causal ? 2.0 : 1.0);
}

// [docs/models-and-assumptions.md#flops]
double layer_training_flops(const model& m, const layer_spec& l, std::int64_t sequence, bool causal) {
  const double gemms = 6.0 * static_cast<double>(attention_weights(m, l) + mlp_weights(m, l));
  const double scores = 12.0 * static_cast<double>(query_width(l)) * mean_keys(sequence, causal);
  return gemms + scores;
}

}  // namespace

std::int64_t layer_parameters(const model& m, const layer_spec& l) {
  return attention_weights(m, l) + mlp_weights(m, l) + norm_weights(m, l);
}

parameter_parts parameters_by_part(const model& m) {
  parameter_parts p;
  p.embedding = m.vocab * m.hidden;
  p.output = m.tied_embeddings ? 0 : m.vocab * m.hidden;
  p.norms = m.hidden;
  for (const layer_spec& l : m.layers) {
    p.attention += attention_weights(m, l);
    p.mlp += mlp_weights(m, l);
    p.norms += norm_weights(m, l);
  }
  return p;
}

std::int64_t parameters(const model& m) {
  const parameter_parts p = parameters_by_part(m);
  return p.embedding + p.attention + p.mlp + p.norms + p.output;
}

// [docs/models-and-assumptions.md#flops]
double training_flops_per_token(const model& m, std::int64_t sequence, bool causal) {
  double flops_per_token = 6.0 * static_cast<double>(m.hidden) * static_cast<double>(m.vocab);
  for (const layer_spec& l : m.layers) flops_per_token += layer_training_flops(m, l, sequence, causal);
  return flops_per_token;
}

double kv_bytes_per_token(const model& m, precision kv) {
  std::int64_t elements = 0;
  for (const layer_spec& l : m.layers) elements += 2 * kv_width(l);
  return static_cast<double>(elements) * bytes_per_element(kv);
}

double weight_bytes(const model& m, precision p) {
  return static_cast<double>(parameters(m)) * bytes_per_element(p);
}

}  // namespace nvlsim
