// Activations that a layer keeps for its backward pass. [docs/models-and-assumptions.md#memory]
#include <algorithm>

#include "training/operator_list.hpp"

namespace nvlsim {
namespace {

struct keeper {
  const layer_spec& l;
  const training_workload& w;
  token_counts t;
  double tp, hidden, element;                      ///< bytes per element of a GEMM operand
  double attention_input, mlp_input, mlp_product;  ///< the same of inputs of GEMMs; 0: frozen weights need none
  double expert_output;                            ///< bytes per element of the output of experts
  double score_bytes;                              ///< kept per score by attention that is not fused
};

/// What stays on the GPU, and what waits in CPU memory.
struct kept_bytes {
  double here = 0, away = 0;
  void add(double size, bool offloaded = false) { (offloaded ? away : here) += size; }
};

/// Queries and selected keys of an indexer.
double chosen(const keeper& k) {
  if (k.l.index_heads == 0 || !attends_sparsely(k.l, k.w.seq_length)) return 0;
  return k.t.sharded * (2 * real(k.l.index_heads * k.l.index_dim) + 4 * keys_of(k.l, real(k.w.seq_length)).pooled);
}

/// Inputs and output of attention, the inputs of norms of queries and keys, and the output as it was quantised.
void grouped_query(const keeper& k, kept_bytes& b) {
  const double q = real(k.l.heads * k.l.head_dim), out = real(k.l.heads * value_dim(k.l));
  const double keys = k.l.kv == kv_source::shared ? 0 : real(k.l.kv_heads * k.l.head_dim);
  const double values = k.l.kv == kv_source::shared ? 0 : real(k.l.kv_heads * value_dim(k.l));
  const double t = k.t.whole / k.tp;
  b.add(t * 2 * (q + keys + values), k.w.offload.core_attn);
  b.add(t * 2 * out, k.w.offload.attn_proj);
  if (k.l.qk_norm != qk_norm_kind::none) b.add(t * 2 * (q + keys), k.w.offload.core_attn);
  if (k.l.attention_gate) b.add(t * 2 * 2 * out);  // the gate, and the output before it
  if (k.element < 2) b.add(t * k.element * out, k.w.offload.attn_proj);
  if (!k.w.recompute.core_attention) b.add(t * real(k.l.heads) * real(k.w.seq_length) * k.score_bytes);
  b.add(chosen(k));
}

void latent(const keeper& k, kept_bytes& b) {
  const mla_spec& a = k.l.mla;
  const double ranks = real(a.q_lora_rank + a.kv_lora_rank), rope = real(a.qk_rope_dim), v = real(a.v_head_dim);
  const double heads = real(k.l.heads) / k.tp, qk = real(a.qk_nope_dim + a.qk_rope_dim);
  const bool up = k.w.recompute.mla_up_proj;
  b.add(k.t.whole * (2 * 2 * ranks + 2 * rope));
  if (attends_sparsely(k.l, k.w.seq_length)) {  // absorbed queries, their output, and values by head
    if (!up) b.add(k.t.whole * heads * 2 * (qk + real(a.kv_lora_rank) + rope), k.w.offload.core_attn);
    b.add(k.t.whole * heads * (2 * real(a.kv_lora_rank) + 2 * v), k.w.offload.attn_proj);
    b.add(chosen(k));
  } else {
    if (!up) b.add(k.t.whole * heads * 2 * (2 * qk + v), k.w.offload.core_attn);
    b.add(k.t.whole * heads * 2 * v, k.w.offload.attn_proj);
  }
  b.add(k.t.whole * 2 * 2 * real(gate_width(k.l)) / k.tp);
  if (k.element < 2) b.add(k.t.whole * heads * v * k.element, k.w.offload.attn_proj);
}

void compressed(const keeper& k, kept_bytes& b) {
  const compressed_spec& c = k.l.compressed;
  const double dim = real(k.l.head_dim), q = real(k.l.heads) * dim / k.tp, overlap = k.l.sparse_keys > 0 ? 2 : 1;
  const double pooled = c.ratio > 0 ? 2 * overlap * (dim + real(k.l.index_dim)) : 0;
  b.add(k.t.sharded * (2 * 2 * real(c.q_lora_rank) + 2 * 2 * dim + 2 * pooled));
  b.add(k.t.whole * 2 * q, k.w.offload.core_attn);
  b.add(k.t.whole * (2 * q + (k.element < 2 ? k.element * q : 0)), k.w.offload.attn_proj);
  b.add(k.t.whole * k.element * real(c.o_groups * c.o_lora_rank) / k.tp, k.w.offload.attn_proj);
  b.add(chosen(k));
}

/// Mamba-2's fused kernel: projected inputs, output of the scan and normalised output. It computes the convolution
/// and the states again.
void mamba(const keeper& k, kept_bytes& b) {
  const scan_spec& s = k.l.scan;
  const double width = real(s.heads * s.head_dim);
  const double inputs = 2 * width + 2 * real(s.groups * s.state) + real(s.heads);
  b.add(k.t.whole * (2 * inputs + 2 * width + k.element * width) / k.tp);
}

/// The gated delta rule of flash-linear-attention: inputs and output of the convolution, queries and keys
/// normalised and repeated for every head of values, the inverse of each chunk's matrix, two scalars a head in
/// FP32, the output, its gate and the normalised product.
void delta_net(const keeper& k, kept_bytes& b) {
  const scan_spec& s = k.l.scan;
  const double width = real(s.heads * s.head_dim), keys = 2 * real(s.key_heads * s.state);
  const double repeated = 2 * real(s.heads * s.state), chunk = real(s.heads * s.chunk);
  const double decay = s.gate_rank > 0 ? real(s.heads * s.state) : real(s.heads);
  b.add(k.t.whole *
        (2 * 2 * (keys + width) + 2 * repeated + 2 * chunk + 4 * (decay + real(s.heads)) + 2 * 2 * width +
         k.element * width) /
        k.tp);
  if (s.gate_rank > 0) b.add(k.t.whole * 2 * 2 * real(s.gate_rank));
}

void mixer(const keeper& k, kept_bytes& b) {
  switch (k.l.attention) {
    case attention_kind::none:
      return;
    case attention_kind::grouped_query:
      return grouped_query(k, b);
    case attention_kind::mla:
      return latent(k, b);
    case attention_kind::compressed:
      return compressed(k, b);
    case attention_kind::mamba:
      return mamba(k, b);
    case attention_kind::linear:
      return delta_net(k, b);
  }
}

/// Bytes per element of the inputs of activations. Frozen recipes with formats of 8 bits or fewer store them in 8
/// bits (activation_func_fp8_input_store). [assumed]
double activation_input(const keeper& k) {
  if (keeps_fp8_inputs(k.w)) return 1;
  return k.w.task == training_task::lora ? std::max(1.0, k.element) : 2;
}

void experts(const keeper& k, kept_bytes& b) {
  const recompute_spec& r = k.w.recompute;
  const moe_spec& x = k.l.moe;
  const double width = k.l.gated_mlp ? 2 : 1, seen = expert_width(k.hidden, k.l), etp = real(k.w.par.etp);
  const double routed = k.t.moe * real(x.top_k) * load_of_experts(k.l, k.w).rows, f = real(x.expert_ffn);
  const double input = keeps_fp8_inputs(k.w) ? 1 : 2;
  if (!r.moe) {
    b.add(routed / etp * k.mlp_input * seen, k.w.offload.expert_fc1);  // permuted input
    b.add(routed / etp * k.expert_output * seen);
    b.add(routed * input * width * f / etp, k.w.offload.moe_act);
    if (!r.activation) b.add(routed * k.mlp_product * f / etp, k.w.offload.moe_act);
  }
  if (x.latent > 0 && !r.moe)
    b.add(k.t.moe / etp * k.mlp_input * seen);  // combined output before the up-projection
  if (!r.moe && !r.shared_experts) b.add(k.t.whole * (input * width + k.mlp_product) * real(x.shared_ffn) / k.tp);
}

}  // namespace

/// DeepSeek's framework with its FP8 recipe.
static bool as_deepseek(const training_workload& w) {
  return w.schedule == pipeline_schedule::dualpipe && bytes_per_element(w.gemm_precision) < 2;
}

std::pair<double, double> moment_bytes(const training_workload& w) {
  const double usual = as_deepseek(w) ? 2 : 4;
  return {w.optimizer.first_moment.value_or(usual), w.optimizer.second_moment.value_or(usual)};
}

bool keeps_fp8_inputs(const training_workload& w) { return w.fp8_activation_inputs.value_or(as_deepseek(w)); }

bool recomputes_layer(const recompute_spec& r, std::int64_t layer, bool predicts) {
  return r.full && (!r.block || (layer < r.num_layers && !predicts));  // Megatron-LM skips prediction modules
}

stored_bytes stored_activations(const model& m, const layer_spec& l, const training_workload& w,
                                const training_profile& framework) {
  const token_counts t = tokens_of(w);
  const double streams = real(m.residual_streams), h = real(m.hidden);
  if (w.recompute.full) return {bytes::from_base(t.sharded * 2 * h * streams), {}};  // the layer's input only
  // Quantised recipes keep the quantised inputs of linear layers; attention also keeps its output in BF16.
  const double element = std::min(2.0, bytes_per_element(w.gemm_precision));
  const bool frozen = w.task == training_task::lora, stated = w.lora.rank > 0;
  const auto input = [&](bool adapted) { return frozen ? (stated && adapted ? 2.0 : 0.0) : element; };
  const keeper k{l, w, t, real(w.par.tp), h, element, frozen && !stated ? element : input(w.lora.qkv),
                 input(w.lora.fc1), input(w.lora.fc2), framework.expert_output_bytes,
                 // Of softmax 2 B; with dropout its mask and output, too. [Korthikanti et al., arXiv 2205.05198]
                 framework.score_passes > 2   ? 5.0
                 : framework.score_passes > 0 ? 2.0
                                              : 0.0};
  kept_bytes b;
  mixer(k, b);
  // A norm before latent attention or experts is a kernel of its own, which can be computed again; other norms are
  // part of the kernel of the next projection.
  const auto norm = [&](double tokens, bool alone, double output, bool away, bool output_away, bool again) {
    b.add(tokens * 2 * h * (again ? 1 : streams), away);
    if (!(alone && w.recompute.layernorm)) b.add(tokens * output * h, output_away);
  };
  const bool mixes = l.attention != attention_kind::none;
  if (mixes) {
    const bool alone = l.attention == attention_kind::mla || l.attention == attention_kind::compressed;
    norm(t.sharded, alone, k.attention_input, w.offload.attn_norm, w.offload.qkv_linear, false);
  }
  // Copies of several residual streams before the second block are computed again from those before the first.
  const bool again = w.recompute.hyper_connections && mixes && streams > 1;
  if (l.routed()) {
    norm(t.moe / real(w.par.etp), true, k.mlp_input, w.offload.mlp_norm, false, again);
    experts(k, b);
  } else if (l.ffn_hidden > 0) {
    const double width = l.gated_mlp ? 2 : 1, f = real(l.ffn_hidden);
    norm(t.sharded, false, k.mlp_input, w.offload.mlp_norm, false, again);
    if (!w.recompute.mlp) {
      b.add(t.whole * activation_input(k) * width * f / k.tp, w.offload.moe_act);
      if (!w.recompute.activation) b.add(t.whole * k.mlp_product * f / k.tp, w.offload.moe_act);
    }
  }
  return {bytes::from_base(b.here), bytes::from_base(b.away)};
}

}  // namespace nvlsim
