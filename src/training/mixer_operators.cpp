#include <algorithm>

#include "nvlsim/compute/elementwise.hpp"
#include "training/operator_list.hpp"

namespace nvlsim {
namespace {

double sequence(const operator_list& o) { return real(o.workload.seq_length); }

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
    const double causal = causal_pairs(n, o.layer.window > 0 ? std::min(real(o.layer.window), n) : n);
    pairs += one.share * (o.layer.bidirectional ? 2 * causal - n : causal);
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

/// Each GPU scores its own shard of the tokens.
void indexer(operator_list& o) {
  const layer_spec& l = o.layer;
  if (l.index_heads == 0) return;
  const double heads = real(l.index_heads), dim = real(l.index_dim), t = o.tokens.sharded;
  const mean_keys k = keys_of(l, sequence(o));
  o.project({matrix::index_query});
  o.project({matrix::index_key, matrix::index_weight});
  layer_operator& i = o.add(layer_operator::type::indexer, "indexer", false);
  i.index = {t, heads, dim, k.scored, k.pooled, o.workload.fp8_attention};
  o.keep(t * (2 * heads * dim + 4 * k.pooled));  // queries and selected keys
}

/// Kept: attention's inputs and output, the inputs of norms of queries and keys, the gate, and the output as it
/// was quantised.
void grouped_query(operator_list& o) {
  const layer_spec& l = o.layer;
  const double t = o.tokens.whole, q = real(l.heads * l.head_dim) / o.tp, v = real(l.heads * value_dim(l)) / o.tp;
  const bool own = l.kv != kv_source::shared;
  const double keys = own ? real(l.kv_heads * l.head_dim) / o.tp : 0,
               values = own ? real(l.kv_heads * value_dim(l)) / o.tp : 0;
  const double kv = real(projected_kv(l)) / o.tp, gate = real(gate_width(l)) / o.tp;
  const bool away = o.workload.offload.core_attn, output_away = o.workload.offload.attn_proj;
  o.adapt(o.workload.lora.qkv, o.project({matrix::query, matrix::key_value, matrix::attention_gate}),
          adapted_side::column);
  // A norm of the queries and one of the keys. Backward: input and gradient read, gradient written.
  if (l.qk_norm != qk_norm_kind::none) {
    o.stream("qk_norm", t * (q + keys) * compute::elementwise_bytes("norm"), false, 1.5).launches = 2;
    o.keep(t * 2 * (q + keys), away);
  }
  o.stream("rotary", t * (q + kv / 2) * compute::elementwise_bytes("rotary"), false, 1);
  if (l.index_heads > 0 && attends_sparsely(l, o.workload.seq_length)) indexer(o);
  o.keep(t * 2 * (q + keys + values), away);
  scores(o, real(l.head_dim), real(value_dim(l)), real(l.kv_heads));
  if (!o.workload.recompute.core_attention)
    o.keep(t * real(l.heads) / o.tp * real(o.workload.seq_length) * o.kept.score);
  o.keep(t * 2 * v, output_away);
  if (gate > 0) {
    o.stream("gating", 3 * 2 * t * v, false, 5.0 / 3);
    o.keep(t * 2 * (gate + v));  // and the output before it
  }
  if (o.kept.operand < 2) o.keep(t * o.kept.operand * v, output_away);
  o.adapt(o.workload.lora.proj, o.project({matrix::output}), adapted_side::row);
}

void latent(operator_list& o) {
  const mla_spec& a = o.layer.mla;
  const double ql = real(a.q_lora_rank), kl = real(a.kv_lora_rank), nope = real(a.qk_nope_dim),
               rope = real(a.qk_rope_dim), v = real(a.v_head_dim);
  const double heads = real(o.layer.heads) / o.tp, t = o.tokens.whole;
  const bool up = o.workload.recompute.mla_up_proj;
  const bool away = o.workload.offload.core_attn, output_away = o.workload.offload.attn_proj;
  const double gate = o.width_of(matrix::attention_gate);
  if (gate > 0) o.project({matrix::attention_gate});
  o.project({matrix::query_down, matrix::key_value_down}).launches = ql > 0 ? 4 : 2;  // with their norms
  o.keep(t * 2 * (2 * (ql + kl) + rope));
  o.project({matrix::query_up}, up);
  if (attends_sparsely(o.layer, o.workload.seq_length)) {
    // Absorbed form: all heads share the latent vector of a key.
    o.linear("kv_up.keys", {t, kl, nope, heads}, up);
    o.stream("rotary", 2 * t * heads * (2 * (nope + rope) + kl) + 4 * o.tokens.sharded * (ql + kl), up, 1);
    indexer(o);
    if (!up) o.keep(t * heads * 2 * (nope + rope + kl + rope), away);
    chosen_scores(o, kl + rope, kl);
    o.keep(t * heads * 2 * (kl + v), output_away);
    o.linear("kv_up.values", {t, v, kl, heads}, false);
  } else {
    o.project({matrix::key_value_up}, up);
    o.stream("rotary", 2 * t * heads * (3 * (nope + rope) + 2 * v) + 4 * o.tokens.sharded * (ql + kl), up, 1);
    if (!up) o.keep(t * heads * 2 * (2 * (nope + rope) + v), away);
    scores(o, nope + rope, v, real(o.layer.heads));
    o.keep(t * heads * 2 * v, output_away);
  }
  if (gate > 0) {
    o.stream("gating", 3 * 2 * t * gate, false, 5.0 / 3);
    o.keep(t * 2 * 2 * gate);
  }
  if (o.kept.operand < 2) o.keep(t * heads * v * o.kept.operand, output_away);
  o.adapt(o.workload.lora.proj, o.project({matrix::output}), adapted_side::row);
}

void compressed(operator_list& o) {
  const compressed_spec& c = o.layer.compressed;
  const double t = o.tokens.whole, shared = o.tokens.sharded, dim = real(o.layer.head_dim),
               rank = real(c.q_lora_rank), q = o.width_of(matrix::query_up);
  const double pooled = o.width_of(matrix::pooling) + (c.ratio > 1 ? o.width_of(matrix::index_key) : 0);
  const bool away = o.workload.offload.core_attn, output_away = o.workload.offload.attn_proj;
  o.project({matrix::query_down});
  o.project({matrix::query_up});
  o.project({matrix::key_value_down, matrix::pooling});
  o.keep(shared * 2 * (2 * rank + 2 * dim + pooled));
  o.stream("rotary", 2 * 2 * (t * q + shared * (rank + dim)), false, 1);
  if (c.ratio > 1) o.stream("pool", 2 * shared * pooled * (1 + 0.5 / real(c.ratio)));
  indexer(o);
  o.keep(t * 2 * q, away);
  chosen_scores(o, dim, dim);
  o.keep(t * (2 * q + (o.kept.operand < 2 ? o.kept.operand * q : 0)), output_away);
  o.project({matrix::output_down});
  o.keep(t * o.kept.operand * real(c.o_groups * c.o_lora_rank) / o.tp, output_away);
  o.adapt(o.workload.lora.proj, o.project({matrix::output}), adapted_side::row);
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

/// Mamba-2's fused kernel keeps projected inputs, output of the scan and normalised output. It computes the
/// convolution and the states again.
void mamba(operator_list& o) {
  const scan_spec& s = o.layer.scan;
  const double t = o.tokens.whole, width = real(s.heads * s.head_dim) / o.tp,
               bc = 2 * real(s.groups * s.state) / o.tp;
  o.project({matrix::scan_in});
  o.keep(t * (2 * o.width_of(matrix::scan_in) + 2 * width + o.kept.operand * width));
  convolution(o, width + bc);
  layer_operator& scan = o.add(layer_operator::type::scan, "scan", false);
  scan.scan = {t,    real(s.heads) / o.tp, real(s.head_dim), real(s.state), real(s.groups) / o.tp, real(s.chunk),
               false};
  gated_norm(o, width);
  o.run_in(o.project({matrix::scan_out}), o.workload.kept.scan_output);
}

/// The gated delta rule of flash-linear-attention keeps inputs and output of the convolution, queries and keys
/// normalised and repeated for every head of values, the inverse of each chunk's matrix, two scalars a head in
/// FP32, the output, its gate and the normalised product.
void delta_net(operator_list& o) {
  const scan_spec& s = o.layer.scan;
  const double t = o.tokens.whole, heads = real(s.heads) / o.tp, width = heads * real(s.head_dim),
               keys = real(s.key_heads * s.state) / o.tp, rank = real(s.gate_rank);
  o.project({matrix::scan_in});
  if (rank > 0) {  // decay and output gate from narrow projections, which all ranks compute
    o.project({matrix::scan_gates_down});
    o.project({matrix::scan_gates_up});
    o.keep(t * 2 * 2 * rank);
  }
  convolution(o, width + 2 * keys);
  const double repeated = 2 * heads * real(s.state), chunk = heads * real(s.chunk);
  const double decay = rank > 0 ? heads * real(s.state) : heads;
  o.keep(t * (2 * 2 * (2 * keys + width) + 2 * repeated + 2 * chunk + 4 * (decay + heads) + 2 * 2 * width +
              o.kept.operand * width));
  layer_operator& scan = o.add(layer_operator::type::scan, "scan", false);
  scan.scan = {t, heads, real(s.head_dim), real(s.state), real(s.key_heads) / o.tp, real(s.chunk), true};
  gated_norm(o, width);
  o.run_in(o.project({matrix::scan_out}), o.workload.kept.scan_output);
}

}  // namespace

void add_mixer(operator_list& o) {
  if (o.layer.attention == attention_kind::none) return;
  const bool alone = o.layer.attention == attention_kind::mla || o.layer.attention == attention_kind::compressed;
  o.norm(o.tokens.sharded, {.alone = alone,
                            .output = o.kept.attention_input,
                            .input_away = o.workload.offload.attn_norm,
                            .output_away = o.workload.offload.qkv_linear});
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
