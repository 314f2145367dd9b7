#include "nvlsim/model/matrices.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/weights.hpp"

namespace nvlsim {
namespace {

using part = matrix_part;

/// In the order of `matrix`.
constexpr const char* gemm_names[] = {"q",
                                      "kv",
                                      "attention.gate",
                                      "q_down",
                                      "kv_down",
                                      "pooling",
                                      "q_up",
                                      "kv_up",
                                      "indexer.q",
                                      "indexer.k",
                                      "indexer.weights",
                                      "scan.in",
                                      "scan.gates_down",
                                      "scan.gates_up",
                                      "scan.out",
                                      "attention.out_down",
                                      "attention.out",
                                      "input.gate",
                                      "input.out",
                                      "mlp.up",
                                      "mlp.down",
                                      "router",
                                      "latent.down",
                                      "latent.up",
                                      "shared.up",
                                      "shared.down",
                                      "experts.up",
                                      "experts.down"};
static_assert(std::size(gemm_names) == static_cast<std::size_t>(matrix::expert_down) + 1);

/// Collects the matrices of one layer, less those without a weight.
struct collector {
  const layer_spec& l;
  std::int64_t hidden;
  std::vector<weight_matrix> out = {};

  void add(const weight_matrix& w) {
    if (w.parameters() > 0) out.push_back(w);
  }
  /// In one GEMM with the matrix before it, if that has the same input.
  void join(weight_matrix w) {
    w.joined = !out.empty() && out.back().in == w.in;
    add(w);
  }
  /// Divided by rows.
  void rows(weight_matrix w) {
    w.by = divided::inputs;
    add(w);
  }
};

/// Blocks of pooled keys overlap where an indexer selects among them.
std::int64_t overlap(const layer_spec& l) { return l.sparse_keys > 0 ? 2 : 1; }

/// Queries from `from` values, keys of `key_width`, and a weight per head. Grouped heads choose whole blocks by
/// their best score, without weights.
void indexer(collector& c, std::int64_t from, std::int64_t key_width) {
  if (c.l.index_heads == 0) return;
  c.add({matrix::index_query, part::mixer, c.l.index_heads * c.l.index_dim, from});
  c.add({matrix::index_key, part::mixer, key_width, c.hidden});
  if (c.l.attention != attention_kind::grouped_query)
    c.join({matrix::index_weight, part::mixer, c.l.index_heads, c.hidden});
}

void grouped_query(collector& c) {
  const layer_spec& l = c.l;
  c.add({matrix::query, part::mixer, query_width(l), c.hidden, l.heads});
  c.join({matrix::key_value, part::mixer, projected_kv(l), c.hidden, l.kv_heads});
  c.join({matrix::attention_gate, part::mixer, gate_width(l), c.hidden, l.heads});
  indexer(c, c.hidden, l.index_dim);
  c.rows({matrix::output, part::mixer, c.hidden, l.heads * value_dim(l), l.heads});
}

void latent(collector& c) {
  const mla_spec& a = c.l.mla;
  const std::int64_t heads = c.l.heads, from = a.q_lora_rank > 0 ? a.q_lora_rank : c.hidden;
  c.add({matrix::query_down, part::mixer, a.q_lora_rank, c.hidden});
  c.join({matrix::key_value_down, part::mixer, a.kv_lora_rank + a.qk_rope_dim, c.hidden});
  c.join({matrix::attention_gate, part::mixer, gate_width(c.l), c.hidden, heads});
  c.add({matrix::query_up, part::mixer, heads * (a.qk_nope_dim + a.qk_rope_dim), from, heads});
  c.add({matrix::key_value_up, part::mixer, heads * (a.qk_nope_dim + a.v_head_dim), a.kv_lora_rank, heads});
  indexer(c, from, c.l.index_dim);
  c.rows({matrix::output, part::mixer, c.hidden, heads * a.v_head_dim, heads});
}

void compressed(collector& c) {
  const layer_spec& l = c.l;
  const compressed_spec& s = l.compressed;
  const bool pools = s.ratio > 1;
  c.add({matrix::query_down, part::mixer, s.q_lora_rank, c.hidden});
  c.join({matrix::key_value_down, part::mixer, l.head_dim, c.hidden});
  if (pools && l.kv != kv_source::shared)
    c.join({matrix::pooling, part::mixer, 2 * l.head_dim * overlap(l), c.hidden});
  c.add({matrix::query_up, part::mixer, query_width(l), s.q_lora_rank, l.heads});
  indexer(c, s.q_lora_rank, pools ? 2 * l.index_dim * overlap(l) : 0);
  if (s.o_groups > 0)
    c.add({.name = matrix::output_down,
           .part = part::mixer,
           .out = s.o_lora_rank,
           .in = query_width(l) / s.o_groups,
           .units = s.o_groups,
           .groups = s.o_groups,
           .by = divided::groups});
  c.rows({matrix::output, part::mixer, c.hidden, s.o_groups * s.o_lora_rank, s.o_groups});
}

/// Gate and input, B and C of every group, a step per head; then the output.
void mamba(collector& c) {
  const scan_spec& s = c.l.scan;
  c.add({matrix::scan_in, part::mixer, 2 * scan_width(s) + 2 * s.groups * s.state + s.heads, c.hidden, s.heads});
  c.rows({matrix::scan_out, part::mixer, c.hidden, scan_width(s), s.heads});
}

/// Queries and keys, values and their output gate, and two scalars per head; then the output. With vectors of
/// decay, they and the output gate have a low rank.
void delta_net(collector& c) {
  const scan_spec& s = c.l.scan;
  const std::int64_t keys = 2 * s.key_heads * s.state, values = scan_width(s);
  if (s.gate_rank > 0) {
    c.add({matrix::scan_in, part::mixer, keys + values + s.heads, c.hidden, s.heads});
    c.join({matrix::scan_gates_down, part::mixer, 2 * s.gate_rank, c.hidden});
    c.add({.name = matrix::scan_gates_up,
           .part = part::mixer,
           .out = values,
           .in = s.gate_rank,
           .units = s.heads,
           .groups = 2});
  } else {
    c.add({matrix::scan_in, part::mixer, keys + 2 * values + 2 * s.heads, c.hidden, s.heads});
  }
  c.rows({matrix::scan_out, part::mixer, c.hidden, values, s.heads});
}

void mixer(collector& c) {
  switch (c.l.attention) {
    case attention_kind::grouped_query:
      return grouped_query(c);
    case attention_kind::mla:
      return latent(c);
    case attention_kind::compressed:
      return compressed(c);
    case attention_kind::mamba:
      return mamba(c);
    case attention_kind::linear:
      return delta_net(c);
    case attention_kind::none:
      return;
  }
}

/// The dense MLP, or the router and its experts. The input of a layer is projected from the embedding, gated from
/// the hidden state and projected to it.
void feed_forward(collector& c) {
  const layer_spec& l = c.l;
  const moe_spec& x = l.moe;
  const std::int64_t width = l.gated_mlp ? 2 : 1;
  c.add({matrix::layer_input, part::mlp, 2 * l.layer_input, c.hidden});
  c.add({matrix::layer_input_out, part::mlp, c.hidden, l.layer_input});
  if (!l.routed()) {
    c.add({matrix::up, part::mlp, width * l.ffn_hidden, c.hidden, l.ffn_hidden});
    c.rows({matrix::down, part::mlp, c.hidden, l.ffn_hidden, l.ffn_hidden});
    return;
  }
  const std::int64_t seen = x.latent > 0 ? x.latent : c.hidden;
  c.add({matrix::router, part::router, x.experts, c.hidden});
  c.add({matrix::latent_down, part::mlp, x.latent, c.hidden});
  c.add({matrix::latent_up, part::mlp, c.hidden, x.latent});
  c.add({matrix::shared_up, part::mlp, width * x.shared_ffn, c.hidden, x.shared_ffn});
  c.rows({matrix::shared_down, part::mlp, c.hidden, x.shared_ffn, x.shared_ffn});
  c.add({.name = matrix::expert_up,
         .part = part::experts,
         .out = width * x.expert_ffn,
         .in = seen,
         .units = x.expert_ffn,
         .groups = x.experts});
  c.add({.name = matrix::expert_down,
         .part = part::experts,
         .out = seen,
         .in = x.expert_ffn,
         .units = x.expert_ffn,
         .groups = x.experts,
         .by = divided::inputs});
}

}  // namespace

const char* gemm_name(matrix first, bool joined) {
  if (joined && first == matrix::query) return "qkv";
  if (joined && first == matrix::query_down) return "qkv_down";
  return gemm_names[static_cast<std::size_t>(first)];
}

std::vector<weight_matrix> layer_matrices(const layer_spec& l, std::int64_t hidden) {
  collector c{l, hidden};
  c.out.reserve(16);
  mixer(c);
  feed_forward(c);
  return std::move(c.out);
}

rank_matrix on_rank(const weight_matrix& w, double ranks) {
  rank_matrix r{static_cast<double>(w.out), static_cast<double>(w.in), static_cast<double>(w.groups)};
  if (w.part == matrix_part::experts) return r;
  const double parts = std::min(ranks, static_cast<double>(w.units));
  switch (w.by) {
    case divided::outputs:
      r.out /= parts;
      break;
    case divided::inputs:
      r.in /= parts;
      break;
    case divided::groups:
      r.groups /= parts;
  }
  return r;
}

}  // namespace nvlsim
