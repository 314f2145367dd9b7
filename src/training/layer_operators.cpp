#include "training/layer_operators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "nvlsim/compute/elementwise.hpp"
#include "nvlsim/layers/expert_popularity.hpp"
#include "nvlsim/model/matrices.hpp"
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
  matrix up, down;
  bool recomputed = false, activation_recomputed = false;
};
void dense_mlp(operator_list& o, const mlp_block& b) {
  const double t = o.tokens.whole, width = o.layer.gated_mlp ? 2 : 1, f = o.width_of(b.up) / width;
  o.adapt(o.workload.lora.fc1, o.project({b.up}, b.recomputed), adapted_side::column);
  o.stream("activation", t * f * activation_bytes(o.layer.gated_mlp), b.activation_recomputed,
           activation_backward_share(o.layer.gated_mlp));
  o.adapt(o.workload.lora.fc2, o.project({b.down}), adapted_side::row);
}

/// What an MLP keeps of `f` inner values: the inputs of the activation, `input` bytes each, and its product.
void keep_inner(operator_list& o, double f, double input, bool product) {
  const double width = o.layer.gated_mlp ? 2 : 1;
  o.keep(f * input * width, o.workload.offload.moe_act);
  if (product) o.keep(f * o.kept.mlp_product, o.workload.offload.moe_act);
}

/// Bytes moved by permute and unpermute, per element of the routed copies of tokens. The alltoall dispatcher
/// copies tokens before the exchange and sorts arrivals by local expert, and the reverse on the way back. The
/// deduplicated one sends a token once to a rank, which copies it for its local experts.
double permute_bytes(const operator_list& o, double local_experts) {
  const training_workload& w = o.workload;
  const double ep = real(w.par.ep), top_k = real(o.layer.moe.top_k);
  const double read_and_write = elementwise_bytes("permute"), one_way = read_and_write / 2;
  if (ep > 1 && sends_once(w.dispatcher)) {
    const double arriving =
        ep * reach_of(o.layer.moe, choice_of(w, o.framework), 1 / ep) / top_k;  // of all copies
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

/// Passes of unfused kernels over biased, clamped activations.
double activation_passes(const operator_list& o) {
  return o.framework.unfused_activation_passes *
         (o.workload.fused_expert_mlp ? o.framework.fused_activation_share.read() : 1.0);
}

/// Whether copies of several residual streams before the second block are computed again from those before the
/// first.
bool streams_again(const operator_list& o) {
  return o.workload.recompute.hyper_connections && o.layer.attention != attention_kind::none;
}

void keep_experts(operator_list& o, double routed, double own) {
  const recompute_spec& r = o.workload.recompute;
  const double f = real(o.layer.moe.expert_ffn) / real(o.workload.par.etp), seen = expert_width(o.hidden, o.layer);
  if (r.moe) return;
  o.keep(routed / real(o.workload.par.etp) * o.kept.mlp_input * seen,
         o.workload.offload.expert_fc1);  // permuted input
  o.keep(routed / real(o.workload.par.etp) * o.kept.expert_output * seen);
  keep_inner(o, routed * f, o.kept.inner, !r.activation);
  if (o.layer.moe.latent > 0) o.keep(own * o.kept.mlp_input * seen);  // combined output before the up-projection
}

/// Kernels of a router that is not fused, counted in Megatron-Core (moe_utils.py, router.py): 20 more forward for
/// top-k, softmax, scattered scores and map, and the balancing loss with its own scores; 6 backward.
void launch_apart(const operator_list& o, layer_operator& routing) {
  constexpr double backward_share = 0.3;
  const double more = o.framework.unfused_router_launches;
  routing.launches += more;
  routing.backward_launches = 1 + more * backward_share;
}

void experts(operator_list& o) {
  const layer_spec& l = o.layer;
  const moe_spec& x = l.moe;
  const recompute_spec& r = o.workload.recompute;
  const double etp = real(o.workload.par.etp), ep = real(o.workload.par.ep), own = o.tokens.moe / etp;
  const double e = real(x.experts), f = real(x.expert_ffn), seen = expert_width(o.hidden, l);
  const double routed = o.tokens.moe * real(x.top_k) * load_of_experts(l, o.workload).rows;
  const double local_experts = e / ep, each = std::max(1.0, routed / local_experts);
  const double width = l.gated_mlp ? 2 : 1;
  keep_experts(o, routed, own);
  o.part = layer_part::router;
  o.norm(own, {.alone = true,
               .output = o.kept.mlp_input,
               .input_away = o.workload.offload.mlp_norm,
               .streams_again = streams_again(o)});
  o.linear(gemm_name(matrix::router), {own, e, o.hidden}, r.moe).operands = precision::bf16;
  layer_operator& routing = o.stream("routing", own * e * elementwise_bytes("router"), r.moe);
  if (!fuses_router(o.workload)) launch_apart(o, routing);
  if (x.latent > 0)
    o.run_in(o.linear(gemm_name(matrix::latent_down), {own, seen, o.hidden}, r.moe), o.workload.kept.latent);
  o.part = layer_part::experts;
  o.stream("permute", routed * seen * permute_bytes(o, local_experts) / etp, r.moe, 1).launches =
      dispatch_launches(o.workload, local_experts);
  // A fused MLP activates and casts in the epilogues of its GEMMs, forward and backward; backward it reads what
  // the activation needs.
  const bool fused = o.workload.fused_expert_mlp;
  layer_operator& up = o.linear(gemm_name(matrix::expert_up), {each, f * width / etp, seen, local_experts}, r.moe);
  up.cast_gradient = !fused;
  o.adapt(o.workload.lora.fc1, up, adapted_side::column);
  double activation = fused ? 0 : routed * f / etp * activation_bytes(l.gated_mlp);
  if (l.biased_clamped_activation) activation += activation_passes(o) * routed * f / etp * 2;
  layer_operator& act = o.add(layer_operator::type::stream, "activation", r.moe || r.activation);
  // The weighted bias of the second GEMM is added in a loop over local experts (_apply_bias of experts.py): a
  // product and a sum, half the kernels of an operator such as this activation.
  if (l.biased_clamped_activation && !fused) act.launches += local_experts / 2;
  act.forward_bytes = activation;
  act.backward_bytes =
      activation * activation_backward_share(l.gated_mlp) + (fused ? routed * f / etp * 2 * width : 0);
  layer_operator& down = o.linear(gemm_name(matrix::expert_down), {each, seen, f / etp, local_experts}, r.moe);
  down.cast_input = !fused;
  o.adapt(o.workload.lora.fc2, down, adapted_side::row);
  o.part = layer_part::mlp;
  if (x.latent > 0)
    o.run_in(o.linear(gemm_name(matrix::latent_up), {own, o.hidden, seen}, r.moe), o.workload.kept.latent);
  if (x.shared_ffn == 0) return;
  dense_mlp(o, {matrix::shared_up, matrix::shared_down, r.moe, r.moe});
  const double inner = real(x.shared_ffn) / o.tp;
  if (!r.moe && !r.shared_experts) o.keep(o.tokens.whole * (o.kept.inner * width + o.kept.mlp_product) * inner);
}

}  // namespace

token_counts tokens_of(const training_workload& w) {
  const double tp = static_cast<double>(w.par.tp);
  token_counts t;
  t.whole = static_cast<double>(w.micro_batch_size * w.seq_length) / static_cast<double>(w.par.cp);
  t.sharded = w.par.sequence_parallel ? t.whole / tp : t.whole;
  // With sequence parallelism a rank routes its own tokens, gathered over the expert-tensor-parallel group.
  t.moe = w.par.sequence_parallel ? t.whole / tp * static_cast<double>(w.par.etp) : t.whole;
  return t;
}

expert_choice choice_of(const training_workload& w, const training_profile& framework) {
  return w.forced_balance && framework.forced_in_turn ? expert_choice::in_turn : expert_choice::random;
}

double expert_imbalance(const layer_spec& l, const training_workload& w) {
  if (w.forced_balance || !l.routed()) return w.expert_imbalance;
  const double natural = l.moe.balanced_by_bias ? natural_biased_expert_skew : natural_expert_skew;
  const expert_spread spread{.experts = real(l.moe.experts),
                             .top_k = real(l.moe.top_k),
                             .ranks = real(w.par.ep),
                             .skew = w.expert_skew.value_or(natural)};
  return w.expert_imbalance * busiest_share(spread, std::numeric_limits<double>::infinity());
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

namespace {

/// The operators of a layer, or nothing but its input where a full recompute keeps no more.
operator_list list_operators(const model& m, const layer_spec& l, const training_workload& w,
                             const training_profile& framework) {
  operator_list o(m, l, w, framework);
  add_mixer(o);
  if (l.layer_input > 0) {
    o.project({matrix::layer_input});  // and its projection from the embedding
    o.project({matrix::layer_input_out});
  }
  const recompute_spec& r = w.recompute;
  if (l.routed()) {
    experts(o);
  } else if (l.ffn_hidden > 0) {
    o.part = layer_part::mlp;
    o.norm(o.tokens.sharded,
           {.output = o.kept.mlp_input, .input_away = w.offload.mlp_norm, .streams_again = streams_again(o)});
    dense_mlp(o, {matrix::up, matrix::down, r.mlp, r.mlp || r.activation});
    if (!r.mlp) keep_inner(o, o.tokens.whole * real(l.ffn_hidden) / o.tp, o.kept.activation_input, !r.activation);
  }
  return o;
}

}  // namespace

std::vector<layer_operator> layer_operators(const model& m, const layer_spec& l, const training_workload& w,
                                            const training_profile& framework) {
  return list_operators(m, l, w, framework).take();
}

stored_bytes stored_activations(const model& m, const layer_spec& l, const training_workload& w,
                                const training_profile& framework) {
  if (!w.recompute.full) return list_operators(m, l, w, framework).stored();
  return {bytes::from_base(tokens_of(w).sharded * 2 * real(m.hidden) * real(m.residual_streams)), {}};
}

local_parameters parameters_on_gpu(const model& m, const layer_spec& l, const parallelism& par) {
  const double tp = real(par.tp);
  const vector_parameters v = layer_vectors(m, l);
  local_parameters p{.dense = real(v.whole) + real(v.divided) / tp, .expert = 0};
  for (const weight_matrix& w : layer_matrices(l, m.hidden)) {
    if (w.part == matrix_part::experts) p.expert += real(w.parameters()) / real(par.ep * par.etp);
    else p.dense += on_rank(w, tp).parameters();
  }
  return p;
}

double expert_width(double hidden, const layer_spec& l) { return l.moe.latent > 0 ? real(l.moe.latent) : hidden; }

}  // namespace nvlsim
