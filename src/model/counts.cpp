// Parameters and bytes. [docs/models-and-assumptions.md#flops]
#include <algorithm>

#include "model/weights.hpp"

namespace nvlsim {
namespace {

std::int64_t skipped_experts(const model& m, const layer_spec& l) {
  if (!l.routed()) return 0;
  return expert_parameters(m, l) / l.moe.experts * (l.moe.experts - l.moe.top_k);
}

/// Cached elements of a layer for a sequence of `tokens`.
double kv_elements(const layer_spec& l, std::int64_t tokens) {
  const auto all = static_cast<double>(tokens);
  const auto kept = static_cast<double>(l.window > 0 ? std::min(tokens, l.window) : tokens);
  const auto d = static_cast<double>(l.head_dim), index_key = static_cast<double>(l.index_dim);
  const bool shared = l.kv == kv_source::shared;
  switch (l.attention) {
    case attention_kind::grouped_query:
      return (shared ? 0 : kept * static_cast<double>(l.kv_heads * (l.head_dim + value_dim(l)))) + all * index_key;
    case attention_kind::mla:
      return kept * static_cast<double>(l.mla.kv_lora_rank + l.mla.qk_rope_dim) + all * index_key;
    case attention_kind::compressed:
      return kept * d + (l.compressed.ratio > 0
                             ? all * ((shared ? 0 : d) + index_key) / static_cast<double>(l.compressed.ratio)
                             : 0);
    case attention_kind::linear:
    case attention_kind::mamba:
    case attention_kind::none:
      break;
  }
  return 0;
}

}  // namespace

bool has_routed_experts(const model& m) {
  return std::any_of(m.layers.begin(), m.layers.end(), [](const layer_spec& l) { return l.routed(); });
}

std::int64_t expert_parameters(const model& m, const layer_spec& l) {
  return count_matrices(l, m.hidden)[matrix_part::experts];
}

vector_parameters layer_vectors(const model& m, const layer_spec& l) {
  const std::int64_t norm_of_scan = l.attention == attention_kind::mamba ? scan_width(l.scan) : 0;
  return {norm_weights(m, l) - norm_of_scan, convolution_weights(l) + norm_of_scan};
}

std::int64_t layer_parameters(const model& m, const layer_spec& l) {
  return count_matrices(l, m.hidden).all() + convolution_weights(l) + norm_weights(m, l);
}

parameter_parts parameters_by_part(const model& m) {
  parameter_parts p;
  p.embedding = m.vocab * m.hidden;
  p.tables = m.lookup_tables;
  p.output = m.tied_embeddings ? 0 : m.vocab * m.hidden;
  p.norms = m.hidden;
  for (const layer_spec& l : m.layers) {
    const matrix_counts of = count_matrices(l, m.hidden);
    p.attention += of[matrix_part::mixer] + convolution_weights(l);
    p.mlp += of[matrix_part::mlp];
    p.experts += of[matrix_part::experts];
    p.router += of[matrix_part::router];
    p.norms += norm_weights(m, l);
  }
  return p;
}

std::int64_t parameters(const model& m) {
  const parameter_parts p = parameters_by_part(m);
  return p.embedding + p.tables + p.attention + p.mlp + p.experts + p.router + p.norms + p.output;
}

std::int64_t active_parameters(const model& m) {
  std::int64_t active = parameters(m) - m.lookup_tables;
  for (const layer_spec& l : m.layers) active -= skipped_experts(m, l);
  return active;
}

std::int64_t tower_parameters(const model& m) {
  std::int64_t all = 0;
  for (const tower_spec& t : m.towers) all += t.parameters;
  return all;
}

std::int64_t mtp_parameters(const model& m) {
  // Norms of both inputs and of the output, and the projection that combines both inputs.
  std::int64_t each = 3 * m.hidden + 2 * m.hidden * m.hidden;
  for (const layer_spec& l : m.mtp_block) each += layer_parameters(m, l);
  return m.mtp_layers * each;
}

double kv_bytes_per_sequence(const model& m, precision kv, std::int64_t tokens) {
  double elements = 0;
  for (const layer_spec& l : m.layers) elements += kv_elements(l, tokens);
  return elements * bytes_per_element(kv);
}

double kv_bytes_per_token(const model& m, precision kv) { return kv_bytes_per_sequence(m, kv, 1); }

double state_bytes(const layer_spec& l, precision state) {
  constexpr double convolution_element = 2;
  if (l.attention != attention_kind::mamba && l.attention != attention_kind::linear) return 0;
  const std::int64_t kernel = std::max<std::int64_t>(1, l.scan.conv_kernel);
  const std::int64_t reached = convolution_weights(l) / kernel * (kernel - 1);  // inputs before the newest
  return bytes_per_element(state) * static_cast<double>(scan_width(l.scan) * l.scan.state) +
         convolution_element * static_cast<double>(reached);
}

double state_bytes_per_sequence(const model& m) {
  double all = 0;
  for (const layer_spec& l : m.layers) all += state_bytes(l);
  return all;
}

double weight_bytes(const model& m, precision p) {
  return static_cast<double>(parameters(m)) * bytes_per_element(p);
}

}  // namespace nvlsim
