#include "workload/layer_operators.hpp"

#include <algorithm>

namespace nvlsim {
namespace {

constexpr double backward_share = 1.5;  // bytes of a stream operator's backward over its forward [assumed]

class builder {
 public:
  builder(const model& m, const layer_spec& l, const training_workload& w, double unfused_passes)
      : l_(l), w_(w), t_(tokens_of(w)), unfused_passes_(unfused_passes), h_(static_cast<double>(m.hidden)), tp_(static_cast<double>(w.par.tp)) {}

  std::vector<layer_operator> take() {
    attention();
    if (l_.ffn_hidden > 0 && !l_.routed()) dense_mlp("mlp", static_cast<double>(l_.ffn_hidden), w_.recompute.mlp, w_.recompute.mlp || w_.recompute.activation);
    if (l_.routed()) experts();
    return std::move(out_);
  }

 private:
  void linear(const char* name, double m, double n, double k, bool again, double groups = 1) {
    layer_operator o;
    o.what = layer_operator::type::linear;
    o.name = name;
    o.recomputed = again || w_.recompute.full;
    o.m = m, o.n = n, o.k = k, o.groups = groups;
    o.operands = w_.gemm_precision;
    out_.push_back(o);
  }
  void stream(const char* name, double moved, bool again) {
    layer_operator o;
    o.name = name;
    o.recomputed = again || w_.recompute.full;
    o.forward_bytes = moved, o.backward_bytes = moved * backward_share;
    out_.push_back(o);
  }
  void norm(double tokens) { stream("norm", tokens * h_ * 2 * 5, w_.recompute.layernorm); }  // norm r+w, residual 2r+w

  void attention() {
    if (l_.attention == attention_kind::none) return;
    norm(t_.sharded);
    if (l_.attention == attention_kind::mla) latent_attention();
    else grouped_query_attention();
  }

  void scores(double qk, double v, double kv_heads) {
    const double s = static_cast<double>(w_.seq_length), cp = static_cast<double>(w_.par.cp);
    layer_operator o;
    o.what = layer_operator::type::attention;
    o.name = "attention";
    o.recomputed = w_.recompute.core_attention || w_.recompute.full;
    o.shape.batch = static_cast<double>(w_.micro_batch_size);
    o.shape.heads = static_cast<double>(l_.heads) / tp_;
    o.shape.kv_heads = std::max(1.0, kv_heads / tp_);
    o.shape.qk_dim = qk, o.shape.v_dim = v;
    o.shape.queries = s / cp;
    const double window = l_.window > 0 ? std::min(static_cast<double>(l_.window), s) : s;
    // Causal, balanced over context-parallel ranks: a query sees itself and at most window - 1 keys before it.
    o.shape.pairs = (window * (window + 1) / 2 + (s - window) * window) / cp;
    o.shape.fp8 = w_.fp8_attention;
    out_.push_back(o);
  }

  void grouped_query_attention() {
    const double d = static_cast<double>(l_.head_dim), q = static_cast<double>(l_.heads) * d, kv = static_cast<double>(l_.kv_heads) * d;
    linear("qkv", t_.whole, (q + 2 * kv) / tp_, h_, false);
    stream("rotary", 2 * t_.whole * (q + kv) / tp_ * 2, false);
    scores(d, d, static_cast<double>(l_.kv_heads));
    linear("attention.out", t_.whole, h_, q / tp_, false);
  }

  void latent_attention() {
    const mla_spec& a = l_.mla;
    const double ql = static_cast<double>(a.q_lora_rank), kl = static_cast<double>(a.kv_lora_rank);
    const double nope = static_cast<double>(a.qk_nope_dim), rope = static_cast<double>(a.qk_rope_dim), v = static_cast<double>(a.v_head_dim);
    const double heads = static_cast<double>(l_.heads) / tp_;
    const bool up = w_.recompute.mla_up_proj;
    linear("mla.down", t_.sharded, ql + kl + rope, h_, false);
    linear("mla.q_up", t_.whole, heads * (nope + rope), ql > 0 ? ql : h_, up);
    linear("mla.kv_up", t_.whole, heads * (nope + v), kl, up);
    stream("rotary", 2 * t_.whole * heads * (3 * (nope + rope) + 2 * v) + 4 * t_.sharded * (ql + kl), up);
    scores(nope + rope, v, static_cast<double>(l_.heads));
    linear("attention.out", t_.whole, h_, heads * v, false);
  }

  void dense_mlp(const char* prefix, double f, bool again, bool activation_again) {
    const bool shared = prefix[0] == 's';
    if (!shared) norm(t_.sharded);
    const double width = l_.gated_mlp ? 2 : 1;
    linear(shared ? "shared.up" : "mlp.up", t_.whole, f * width / tp_, h_, again);
    stream("activation", t_.whole * f / tp_ * 2 * (width + 1), activation_again);
    linear(shared ? "shared.down" : "mlp.down", t_.whole, h_, f / tp_, false);
  }

  void experts() {
    const moe_spec& x = l_.moe;
    const recompute_spec& r = w_.recompute;
    const double etp = static_cast<double>(w_.par.etp), ep = static_cast<double>(w_.par.ep);
    const double e = static_cast<double>(x.experts), f = static_cast<double>(x.expert_ffn);
    const double routed = t_.moe * static_cast<double>(x.top_k);
    const double local_experts = e / ep, each = std::max(1.0, routed / local_experts);
    const double width = l_.gated_mlp ? 2 : 1;
    norm(t_.moe / etp);
    linear("router", t_.moe / etp, e, h_, false);
    out_.back().operands = precision::bf16;
    stream("routing", t_.moe / etp * e * 4 * 6, false);
    stream("permute", routed * h_ * 2 * 4 / etp, false);  // permute and unpermute, read and write
    linear("experts.up", each, f * width / etp, h_, r.moe, local_experts);
    double activation = routed * f / etp * 2 * (width + 1);
    if (l_.biased_clamped_activation) activation += unfused_passes_ * routed * f / etp * 2;
    stream("activation", activation, r.moe || r.activation);
    linear("experts.down", each, h_, f / etp, r.moe, local_experts);
    if (x.shared_ffn > 0) dense_mlp("shared", static_cast<double>(x.shared_ffn), false, false);
  }

  const layer_spec& l_;
  const training_workload& w_;
  token_counts t_;
  double unfused_passes_, h_, tp_;
  std::vector<layer_operator> out_;
};

}  // namespace

token_counts tokens_of(const training_workload& w) {
  const double tp = static_cast<double>(w.par.tp);
  token_counts t;
  t.whole = static_cast<double>(w.micro_batch_size * w.seq_length) / static_cast<double>(w.par.cp);
  t.sharded = w.par.sequence_parallel ? t.whole / tp : t.whole;
  // With sequence parallelism each rank routes its own tokens, gathered over the expert-tensor-parallel group.
  t.moe = w.par.sequence_parallel ? t.whole / tp * static_cast<double>(w.par.etp) : t.whole;
  return t;
}

std::vector<layer_operator> layer_operators(const model& m, const layer_spec& l, const training_workload& w,
                                            double unfused_activation_passes) {
  return builder(m, l, w, unfused_activation_passes).take();
}

bytes stored_activations(const model& m, const layer_spec& l, const training_workload& w) {
  const token_counts t = tokens_of(w);
  const double tp = static_cast<double>(w.par.tp), h = static_cast<double>(m.hidden);
  const recompute_spec& r = w.recompute;
  if (r.full) return bytes::from_base(t.sharded * 2 * h);  // the layer's input alone
  // Quantised recipes keep the inputs of linear layers as they were quantised; attention keeps its output in BF16 too.
  const double element = std::min(2.0, bytes_per_element(w.gemm_precision));
  const double norm_output = r.layernorm ? 0 : element;
  const double width = l.gated_mlp ? 2 : 1;
  double kept = 0;
  if (l.attention == attention_kind::mla) {
    const mla_spec& a = l.mla;
    const double ranks = static_cast<double>(a.q_lora_rank + a.kv_lora_rank), rope = static_cast<double>(a.qk_rope_dim);
    const double heads = static_cast<double>(l.heads) / tp, qk = static_cast<double>(a.qk_nope_dim + a.qk_rope_dim);
    const double v = static_cast<double>(a.v_head_dim);
    kept += t.sharded * (2 + norm_output) * h + t.whole * (2 * 2 * ranks + 2 * rope);
    kept += t.whole * heads * (r.mla_up_proj ? 2 * v : 2 * (2 * qk + 2 * v));
    if (element < 2) kept += t.whole * heads * v * element;
  } else if (l.attention != attention_kind::none) {
    const double d = static_cast<double>(l.head_dim), a = static_cast<double>(l.heads), kv = static_cast<double>(l.kv_heads);
    kept += t.sharded * (2 + norm_output) * h + t.whole * 2 * d * (2 * a + 2 * kv) / tp;
    if (element < 2) kept += t.whole * element * a * d / tp;
  }
  if (l.routed()) {
    const double routed = t.moe * static_cast<double>(l.moe.top_k), etp = static_cast<double>(w.par.etp);
    const double f = static_cast<double>(l.moe.expert_ffn), shared = static_cast<double>(l.moe.shared_ffn);
    kept += t.moe / etp * (2 + norm_output) * h;
    if (!r.moe) {
      kept += routed / etp * (element + 2) * h;  // permuted input, unpermuted output
      kept += routed * (2 * width + (r.activation ? 0 : element)) * f / etp;
    }
    kept += t.whole * (2 * width + element) * shared / tp;
  } else if (l.ffn_hidden > 0) {
    const double f = static_cast<double>(l.ffn_hidden);
    kept += t.sharded * (2 + norm_output) * h;
    if (!r.mlp) kept += t.whole * (2 * width + (r.activation ? 0 : element)) * f / tp;
  }
  return bytes::from_base(kept);
}

local_parameters parameters_on_gpu(const model& m, const layer_spec& l, const parallelism& par) {
  local_parameters p;
  const double all = static_cast<double>(layer_parameters(m, l));
  if (l.routed()) {
    const double matrices = l.gated_mlp ? 3 : 2;
    const double experts = static_cast<double>(l.moe.experts * l.moe.expert_ffn * m.hidden) * matrices;
    p.expert = experts / static_cast<double>(par.ep * par.etp);
    p.dense = (all - experts) / static_cast<double>(par.tp);
  } else {
    p.dense = all / static_cast<double>(par.tp);
  }
  return p;
}

}  // namespace nvlsim
