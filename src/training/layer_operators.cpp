#include "training/layer_operators.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/compute/elementwise.hpp"
#include "nvlsim/layers/expert_popularity.hpp"
#include "training/operator_list.hpp"

namespace nvlsim {
namespace {

using compute::elementwise_bytes;

/// Bytes per element of the inner width. Without a gate there is one input less, and one gradient less.
double activation_bytes(bool gated) { return elementwise_bytes("activation") - (gated ? 0 : 2); }
double activation_backward_share(bool gated) {
  return (elementwise_bytes("activation_backward") - (gated ? 0 : 4)) / activation_bytes(gated);
}

struct mlp_block {
  const char *up, *down;  ///< names of its GEMMs
  double ffn = 0;
  bool recomputed = false, activation_recomputed = false;
};
void dense_mlp(operator_list& o, const mlp_block& b) {
  const double f = b.ffn, width = o.layer.gated_mlp ? 2 : 1, t = o.tokens.whole;
  o.linear(b.up, {t, f * width / o.tp, o.hidden}, b.recomputed);
  o.adapt(o.workload.lora.fc1, {t, f * width / o.tp, o.hidden});
  o.stream("activation", t * f / o.tp * activation_bytes(o.layer.gated_mlp), b.activation_recomputed,
           activation_backward_share(o.layer.gated_mlp));
  o.linear(b.down, {t, o.hidden, f / o.tp});
  o.adapt(o.workload.lora.fc2, {t, o.hidden, f / o.tp});
}

/// Bytes moved by permute and unpermute, per element of the routed copies of tokens. The alltoall dispatcher
/// copies tokens before the exchange and sorts arrivals by local expert, and the reverse on the way back. The
/// deduplicated one sends a token once to a rank, which copies it for its local experts.
double permute_bytes(const training_workload& w, double top_k, double local_experts) {
  const double ep = real(w.par.ep), read_and_write = elementwise_bytes("permute"), one_way = read_and_write / 2;
  if (ep > 1 && sends_once(w.dispatcher)) {
    const double arriving = places_reached(ep, top_k) / top_k;  // of all copies
    return 2 * one_way * (1 + arriving);
  }
  return 2 * (one_way * (1 + 1 / top_k) + (ep > 1 && local_experts > 1 ? read_and_write : 0));
}

/// Operators with which a dispatcher moves tokens to experts and, undone, back, counted in Megatron-Core
/// (token_dispatcher.py, fused_a2a.py): an all-to-all permutes, exchanges, and sorts by expert if there are
/// several; DeepEP dispatches and permutes; HybridEP permutes as it dispatches.
double dispatch_launches(const training_workload& w, double local_experts) {
  if (w.par.ep == 1 || w.dispatcher == moe_dispatcher::hybridep) return 1;
  return w.dispatcher == moe_dispatcher::alltoall && local_experts > 1 ? 3 : 2;
}

void experts(operator_list& o, double unfused_activation_passes) {
  const layer_spec& l = o.layer;
  const moe_spec& x = l.moe;
  const recompute_spec& r = o.workload.recompute;
  const double etp = real(o.workload.par.etp), ep = real(o.workload.par.ep), own = o.tokens.moe / etp;
  const double e = real(x.experts), f = real(x.expert_ffn), seen = expert_width(o.hidden, l);
  const double routed = o.tokens.moe * real(x.top_k) * load_of_experts(l, o.workload).rows;
  const double local_experts = e / ep, each = std::max(1.0, routed / local_experts);
  const double width = l.gated_mlp ? 2 : 1;
  o.part = layer_part::router;
  o.norm(own);
  o.linear("router", {own, e, o.hidden}, r.moe).operands = precision::bf16;
  o.stream("routing", own * e * elementwise_bytes("router"), r.moe);
  if (x.latent > 0) o.keep(o.linear("latent.down", {own, seen, o.hidden}, r.moe), o.workload.kept.latent);
  o.part = layer_part::experts;
  o.stream("permute", routed * seen * permute_bytes(o.workload, real(x.top_k), local_experts) / etp, r.moe, 1)
      .launches = dispatch_launches(o.workload, local_experts);
  // A fused MLP activates and casts in the epilogues of its GEMMs, forward and backward; backward it reads what
  // the activation needs.
  const bool fused = o.workload.fused_expert_mlp;
  o.linear("experts.up", {each, f * width / etp, seen, local_experts}, r.moe).cast_gradient = !fused;
  o.adapt(o.workload.lora.fc1, {each, f * width / etp, seen, local_experts});
  double activation = fused ? 0 : routed * f / etp * activation_bytes(l.gated_mlp);
  if (l.biased_clamped_activation) activation += unfused_activation_passes * routed * f / etp * 2;
  layer_operator& act = o.add(layer_operator::type::stream, "activation", r.moe || r.activation);
  // The weighted bias of the second GEMM is added in a loop over local experts (_apply_bias of experts.py): a
  // product and a sum, half the kernels of an operator such as this activation.
  if (l.biased_clamped_activation && !fused) act.launches += local_experts / 2;
  act.forward_bytes = activation;
  act.backward_bytes =
      activation * activation_backward_share(l.gated_mlp) + (fused ? routed * f / etp * 2 * width : 0);
  o.linear("experts.down", {each, seen, f / etp, local_experts}, r.moe).cast_input = !fused;
  o.adapt(o.workload.lora.fc2, {each, seen, f / etp, local_experts});
  o.part = layer_part::mlp;
  if (x.latent > 0) o.keep(o.linear("latent.up", {own, o.hidden, seen}, r.moe), o.workload.kept.latent);
  if (x.shared_ffn > 0) dense_mlp(o, {"shared.up", "shared.down", real(x.shared_ffn), r.moe, r.moe});
}

}  // namespace

operator_list::operator_list(const model& m, const layer_spec& l, const training_workload& w)
    : layer(l), workload(w), tokens(tokens_of(w)), hidden(real(m.hidden)), tp(real(w.par.tp)) {
  // One stream is read twice and written once. With n streams, Megatron-Core's kernels read all of them for their
  // norm, for the projection that gives the weights, for the block's input and for the mixed residual, write that
  // and the expanded output, and add the two. Backward, four gradients of the streams are added up.
  // [docs/models-and-assumptions.md#sparse-attention]
  const double n = real(m.residual_streams), one = elementwise_bytes("residual");
  residual_bytes_ = n > 1 ? 2 * (9 * n + 2) : one;
  residual_backward_bytes_ = n > 1 ? 2 * (21 * n + 3) : one;
}

layer_operator& operator_list::add(layer_operator::type what, const char* name, bool again) {
  layer_operator o;
  o.what = what;
  o.name = name;
  o.part = part;
  o.recomputed = again || workload.recompute.full;
  out_.push_back(o);
  return out_.back();
}

layer_operator& operator_list::linear(const char* name, const gemm_size& s, bool again) {
  layer_operator& o = add(layer_operator::type::linear, name, again);
  o.m = s.m, o.n = s.n, o.k = s.k, o.groups = s.groups;
  o.operands = workload.gemm_precision;
  if (part == layer_part::mixer && layer.scan.heads == 0) keep(o, workload.kept.attention);
  return o;
}

void operator_list::adapt(bool target, const gemm_size& s) {
  const double rank = real(workload.lora.rank);
  if (workload.task != training_task::lora || !target || rank == 0) return;
  for (const gemm_size& narrow : {gemm_size{s.m, rank, s.k, s.groups}, gemm_size{s.m, s.n, rank, s.groups}}) {
    layer_operator& o = linear("adapter", narrow);
    o.operands = precision::bf16;
    o.adapter = true;
  }
  stream("adapter.add", s.groups * s.m * s.n * elementwise_bytes("residual"), false, 1);
}

// In BF16 layers everything is in BF16.
void operator_list::keep(layer_operator& o, const std::optional<precision>& format) const {
  if (format && workload.gemm_precision != precision::bf16) o.operands = *format;
}

layer_operator& operator_list::stream(const char* name, double moved, bool again, double backward_share) {
  layer_operator& o = add(layer_operator::type::stream, name, again);
  o.forward_bytes = moved, o.backward_bytes = moved * backward_share;
  return o;
}

void operator_list::norm(double n) {
  // Backward the norm reads its input and a gradient and writes a gradient, to which the residual's is added.
  const double forward = elementwise_bytes("norm") + residual_bytes_;
  const double after = layer.post_norms ? elementwise_bytes("norm") : 0;
  stream("norm", n * hidden * (forward + after), workload.recompute.layernorm,
         (elementwise_bytes("norm") + 2 + after + residual_backward_bytes_) / (forward + after))
      .launches = layer.post_norms ? 2 : 1;
}

token_counts tokens_of(const training_workload& w) {
  const double tp = static_cast<double>(w.par.tp);
  token_counts t;
  t.whole = static_cast<double>(w.micro_batch_size * w.seq_length) / static_cast<double>(w.par.cp);
  t.sharded = w.par.sequence_parallel ? t.whole / tp : t.whole;
  // With sequence parallelism a rank routes its own tokens, gathered over the expert-tensor-parallel group.
  t.moe = w.par.sequence_parallel ? t.whole / tp * static_cast<double>(w.par.etp) : t.whole;
  return t;
}

double expert_imbalance(const layer_spec& l, const training_workload& w) {
  if (w.forced_balance || !l.routed()) return w.expert_imbalance;
  const double natural = l.moe.balanced_by_bias ? natural_biased_expert_skew : natural_expert_skew;
  return w.expert_imbalance * busiest_share(real(w.par.ep), w.expert_skew.value_or(natural), real(l.moe.experts));
}

// A token goes to a given expert with probability k / E. The load is binomial, approximated as normal.
capacity_load load_of_experts(const layer_spec& l, const training_workload& w) {
  const double imbalance = expert_imbalance(l, w);
  if (!w.expert_capacity_factor || !l.routed()) return {1, imbalance};
  const double tokens = tokens_of(w).moe / real(w.par.etp), p = real(l.moe.top_k) / real(l.moe.experts);
  const double even = tokens * p, capacity = std::ceil(even * *w.expert_capacity_factor);
  const double deviation = std::sqrt(even * (1 - p));
  double kept = std::min(even, capacity);
  if (deviation > 0) {
    const double z = (capacity - even) / deviation;
    const double above = std::erfc(z / std::numbers::sqrt2) / 2,
                 density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    kept = even - deviation * (density - z * above);  // less the mean excess over the capacity
  }
  capacity_load out;
  out.kept = std::clamp(kept / even, 0.0, 1.0);
  out.rows = w.static_experts() ? capacity / even : std::min(out.kept * imbalance, capacity / even);
  return out;
}

std::vector<layer_operator> layer_operators(const model& m, const layer_spec& l, const training_workload& w,
                                            double unfused_activation_passes) {
  operator_list o(m, l, w);
  add_mixer(o);
  if (l.layer_input > 0) {
    const double t = o.tokens.sharded, input = real(l.layer_input);
    o.linear("input.gate", {t, 2 * input, o.hidden});  // and its projection from the embedding
    o.linear("input.out", {t, o.hidden, input});
  }
  const recompute_spec& r = w.recompute;
  if (l.routed()) {
    experts(o, unfused_activation_passes);
  } else if (l.ffn_hidden > 0) {
    o.part = layer_part::mlp;
    o.norm(o.tokens.sharded);
    dense_mlp(o, {"mlp.up", "mlp.down", real(l.ffn_hidden), r.mlp, r.mlp || r.activation});
  }
  return o.take();
}

namespace {

/// Dense parameters that every tensor-parallel rank holds whole, as Megatron-Core does: norms, routers,
/// projections to low ranks, indexers, and copies of KV heads where ranks outnumber them.
double replicated_parameters(const model& m, const layer_spec& l, double tp) {
  const double h = real(m.hidden);
  const double blocks = (l.attention != attention_kind::none ? 1 : 0) + (l.routed() || l.ffn_hidden > 0 ? 1 : 0);
  double all = blocks * h * (l.post_norms ? 2 : 1) + real(l.moe.experts) * h + 2 * real(l.moe.latent) * h;
  const bool compresses = l.attention == attention_kind::compressed;
  const double rank = real(compresses ? l.compressed.q_lora_rank : l.mla.q_lora_rank);
  if (l.attention == attention_kind::mla) all += h * (rank + real(l.mla.kv_lora_rank + l.mla.qk_rope_dim));
  if (compresses) {
    const double overlap = l.sparse_keys > 0 ? 2 : 1;
    all += h * (rank + real(l.head_dim) * (l.compressed.ratio > 1 ? 1 + 2 * overlap : 1));
  }
  if (l.index_heads > 0)
    all += (rank > 0 ? rank : h) * real(l.index_heads * l.index_dim) + h * real(l.index_dim + l.index_heads);
  if (l.scan.gate_rank > 0) all += 2 * h * real(l.scan.gate_rank);
  if (l.attention == attention_kind::grouped_query && real(l.kv_heads) < tp)
    all += h * real(projected_kv(l)) * (tp / real(l.kv_heads) - 1) / (tp - 1);
  return all;
}

}  // namespace

local_parameters parameters_on_gpu(const model& m, const layer_spec& l, const parallelism& par) {
  const double experts = real(expert_parameters(m, l)), dense = real(layer_parameters(m, l)) - experts;
  const double tp = real(par.tp);
  const double whole = par.tp > 1 ? replicated_parameters(m, l, tp) : 0;
  return {.dense = whole + (dense - whole) / tp, .expert = experts / real(par.ep * par.etp)};
}

double expert_width(double hidden, const layer_spec& l) { return l.moe.latent > 0 ? real(l.moe.latent) : hidden; }

}  // namespace nvlsim
