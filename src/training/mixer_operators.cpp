#include <algorithm>

#include "nvlsim/compute/elementwise.hpp"
#include "training/operator_list.hpp"

namespace nvlsim {
namespace {

double sequence(const operator_list& o) { return real(o.workload.seq_length); }

/// Causal (query, key) pairs: a query attends to itself and at most window - 1 earlier keys.
double causal_pairs(double s, double window) { return window * (window + 1) / 2 + (s - window) * window; }

void scores(operator_list& o, double qk, double v, double kv_heads) {
  const double s = sequence(o), cp = real(o.workload.par.cp);
  layer_operator& a = o.add(layer_operator::type::attention, "attention", o.workload.recompute.core_attention);
  const std::vector<sequence_share> packed = sequences_of(o.workload);
  const double length = mean_length(packed);
  a.shape.batch = real(o.workload.micro_batch_size) * (s / length);
  // Context-parallel ranks shard the tokens of every head, or the heads.
  const bool by_heads = o.workload.cp_exchange == context_exchange::all_to_all;
  const double shards = by_heads ? o.tp * cp : o.tp, parts = by_heads ? 1 : cp;
  a.shape.heads = real(o.layer.heads) / shards;
  a.shape.kv_heads = std::max(1.0, kv_heads / shards);
  a.shape.qk_dim = qk, a.shape.v_dim = v;
  a.shape.queries = length / parts;
  double pairs = 0;
  for (const sequence_share& one : packed) {
    const double n = real(one.length);
    pairs += one.share * causal_pairs(n, o.layer.window > 0 ? std::min(real(o.layer.window), n) : n);
  }
  // Grouped heads with an indexer attend to the chosen keys.
  if (o.layer.attention == attention_kind::grouped_query && attends_sparsely(o.layer, o.workload.seq_length))
    pairs = std::min(pairs, length * keys_of(o.layer, length).pooled);
  a.shape.pairs = pairs / parts;  // balanced over context-parallel ranks
  a.shape.fp8 = o.workload.fp8_attention;
  a.shape.alone = true;
}

void chosen_scores(operator_list& o, double qk, double v) {
  const mean_keys k = keys_of(o.layer, sequence(o));
  layer_operator& a =
      o.add(layer_operator::type::sparse_attention, "attention", o.workload.recompute.core_attention);
  a.sparse = {o.tokens.whole, real(o.layer.heads) / o.tp, k.window + k.pooled, qk, v, o.workload.fp8_attention};
}

/// Queries are projected from width `rank`, keys from the hidden state. Each GPU scores its own shard of the
/// tokens.
void indexer(operator_list& o, double rank, double key_width) {
  const layer_spec& l = o.layer;
  if (l.index_heads == 0) return;
  const double heads = real(l.index_heads), dim = real(l.index_dim), t = o.tokens.sharded;
  const double weights = l.attention == attention_kind::grouped_query ? 0 : heads;
  const mean_keys k = keys_of(l, sequence(o));
  o.linear("indexer.q", {t, heads * dim, rank});
  o.linear("indexer.kw", {t, key_width + weights, o.hidden});
  layer_operator& i = o.add(layer_operator::type::indexer, "indexer", false);
  i.index = {t, heads, dim, k.scored, k.pooled, o.workload.fp8_attention};
}

void grouped_query(operator_list& o) {
  const layer_spec& l = o.layer;
  const double t = o.tokens.whole, q = real(l.heads * l.head_dim), v = real(l.heads * value_dim(l));
  const double kv = real(projected_kv(l)), gate = real(gate_width(l));
  o.linear("qkv", {t, (q + gate + kv) / o.tp, o.hidden});
  o.adapt(o.workload.lora.qkv, {t, (q + gate + kv) / o.tp, o.hidden});
  // A norm of the queries and one of the keys. Backward: input and gradient read, gradient written.
  const double keys = l.kv == kv_source::shared ? 0 : real(l.kv_heads * l.head_dim);
  if (l.qk_norm != qk_norm_kind::none)
    o.stream("qk_norm", t * (q + keys) / o.tp * compute::elementwise_bytes("norm"), false, 1.5).launches = 2;
  o.stream("rotary", t * (q + kv / 2) / o.tp * compute::elementwise_bytes("rotary"), false, 1);
  if (l.index_heads > 0 && attends_sparsely(l, o.workload.seq_length)) indexer(o, o.hidden, real(l.index_dim));
  scores(o, real(l.head_dim), real(value_dim(l)), real(l.kv_heads));
  if (gate > 0) o.stream("attention.gate", 3 * 2 * t * v / o.tp, false, 5.0 / 3);
  o.linear("attention.out", {t, o.hidden, v / o.tp});
  o.adapt(o.workload.lora.proj, {t, o.hidden, v / o.tp});
}

void latent(operator_list& o) {
  const mla_spec& a = o.layer.mla;
  const double ql = real(a.q_lora_rank), kl = real(a.kv_lora_rank), nope = real(a.qk_nope_dim),
               rope = real(a.qk_rope_dim);
  const double v = real(a.v_head_dim), heads = real(o.layer.heads) / o.tp, t = o.tokens.whole,
               q_in = ql > 0 ? ql : o.hidden;
  const bool up = o.workload.recompute.mla_up_proj;
  const double gate = real(gate_width(o.layer)) / o.tp;
  if (gate > 0) o.linear("mla.gate", {t, gate, o.hidden});
  o.linear("mla.down", {o.tokens.sharded, ql + kl + rope, o.hidden}).launches =
      ql > 0 ? 4 : 2;  // with their norms
  o.linear("mla.q_up", {t, heads * (nope + rope), q_in}, up);
  if (attends_sparsely(o.layer, o.workload.seq_length)) {
    // Absorbed form: all heads share the latent vector of a key.
    o.linear("mla.absorb", {t, kl, nope, heads}, up);
    o.stream("rotary", 2 * t * heads * (2 * (nope + rope) + kl) + 4 * o.tokens.sharded * (ql + kl), up, 1);
    indexer(o, q_in, real(o.layer.index_dim));
    chosen_scores(o, kl + rope, kl);
    o.linear("mla.values", {t, v, kl, heads}, false);
  } else {
    o.linear("mla.kv_up", {t, heads * (nope + v), kl}, up);
    o.stream("rotary", 2 * t * heads * (3 * (nope + rope) + 2 * v) + 4 * o.tokens.sharded * (ql + kl), up, 1);
    scores(o, nope + rope, v, real(o.layer.heads));
  }
  if (gate > 0) o.stream("attention.gate", 3 * 2 * t * gate, false, 5.0 / 3);
  o.linear("attention.out", {t, o.hidden, heads * v});
}

void compressed(operator_list& o) {
  const layer_spec& l = o.layer;
  const compressed_spec& c = l.compressed;
  const double t = o.tokens.whole, shared = o.tokens.sharded, dim = real(l.head_dim), heads = real(l.heads) / o.tp;
  const double overlap = l.sparse_keys > 0 ? 2 : 1, groups = real(c.o_groups), rank = real(c.q_lora_rank);
  const double pooled = c.ratio > 1 && l.kv == kv_source::own ? 2 * dim * overlap : 0,
               index_pooled = l.index_heads > 0 && c.ratio > 1 ? 2 * real(l.index_dim) * overlap : 0;
  o.linear("q_down", {shared, rank, o.hidden});
  o.linear("q_up", {t, heads * dim, rank});
  o.linear("kv", {shared, dim + pooled, o.hidden});
  o.stream("rotary", 2 * 2 * (t * heads * dim + shared * (rank + dim)), false, 1);
  if (c.ratio > 1) o.stream("pool", 2 * shared * (pooled + index_pooled) * (1 + 0.5 / real(c.ratio)));
  indexer(o, rank, index_pooled);
  chosen_scores(o, dim, dim);
  o.linear("attention.out_down",
           {t, real(c.o_lora_rank), real(l.heads) * dim / groups, std::max(1.0, groups / o.tp)}, false);
  o.linear("attention.out", {t, o.hidden, groups * real(c.o_lora_rank) / o.tp});
}

/// The backward pass repeats the convolution, as fused kernels do.
void convolution(operator_list& o, double width) {
  // Input and output; backward both gradients and the input, and the forward pass again.
  constexpr double passes = 2, backward_passes = 3 + 2;
  o.stream("conv1d", passes * 2 * o.tokens.whole * width, false, backward_passes / passes);
}

/// Output times gate, then norm: reads two and writes one; backward reads three and writes two.
void gated_norm(operator_list& o, double width) {
  o.stream("gated_norm", 3 * 2 * o.tokens.whole * width, false, 5.0 / 3);
}

void mamba(operator_list& o) {
  const scan_spec& s = o.layer.scan;
  const double t = o.tokens.whole, width = real(s.heads * s.head_dim) / o.tp,
               bc = 2 * real(s.groups * s.state) / o.tp;
  o.linear("mamba.in", {t, 2 * width + bc + real(s.heads) / o.tp, o.hidden});
  convolution(o, width + bc);
  layer_operator& scan = o.add(layer_operator::type::scan, "scan", false);
  scan.scan = {t,    real(s.heads) / o.tp, real(s.head_dim), real(s.state), real(s.groups) / o.tp, real(s.chunk),
               false};
  gated_norm(o, width);
  o.keep(o.linear("mamba.out", {t, o.hidden, width}), o.workload.kept.scan_output);
}

void delta_net(operator_list& o) {
  const scan_spec& s = o.layer.scan;
  const double t = o.tokens.whole, width = real(s.heads * s.head_dim) / o.tp,
               keys = real(s.key_heads * s.state) / o.tp;
  const double rank = real(s.gate_rank), scalars = real(s.heads) / o.tp;
  if (rank > 0) {  // decay and output gate from narrow projections, which all ranks compute
    o.linear("delta.in", {t, 2 * keys + width + scalars, o.hidden});
    o.linear("delta.gates_down", {o.tokens.sharded, 2 * rank, o.hidden});
    o.linear("delta.gates_up", {t, width, rank, 2});
  } else {
    o.linear("delta.in", {t, 2 * keys + 2 * width + 2 * scalars, o.hidden});
  }
  convolution(o, width + 2 * keys);
  layer_operator& scan = o.add(layer_operator::type::scan, "scan", false);
  scan.scan = {t,   real(s.heads) / o.tp, real(s.head_dim), real(s.state), real(s.key_heads) / o.tp, real(s.chunk),
               true};
  gated_norm(o, width);
  o.keep(o.linear("delta.out", {t, o.hidden, width}), o.workload.kept.scan_output);
}

}  // namespace

mean_keys keys_of(const layer_spec& l, double s) {
  mean_keys k;
  const bool pools = l.attention == attention_kind::compressed;
  if (pools && l.window > 0) {
    k.window = causal_pairs(s, std::min(real(l.window), s)) / s;
  }
  if (pools && l.compressed.ratio == 0) return k;
  const double available =
      pools ? s / real(l.compressed.ratio) : s;  // at the end of the sequence; half as many on average
  const double max = l.sparse_keys > 0 ? std::min(real(l.sparse_keys), available) : available;
  k.pooled = max * (1 - max / (2 * available));
  k.scored = l.index_heads > 0 ? available / 2 : 0;
  return k;
}

bool attends_sparsely(const layer_spec& l, std::int64_t s) {
  return l.attention == attention_kind::compressed || (l.sparse_keys > 0 && l.sparse_keys < s);
}

void add_mixer(operator_list& o) {
  if (o.layer.attention == attention_kind::none) return;
  o.norm(o.tokens.sharded);
  switch (o.layer.attention) {
    case attention_kind::grouped_query:
      return grouped_query(o);
    case attention_kind::mla:
      return latent(o);
    case attention_kind::compressed:
      return compressed(o);
    case attention_kind::linear:
      return delta_net(o);
    case attention_kind::mamba:
      return mamba(o);
    case attention_kind::none:
      return;
  }
}

}  // namespace nvlsim
