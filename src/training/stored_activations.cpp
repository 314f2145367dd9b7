// Activations that a layer keeps for its backward pass. [docs/models-and-assumptions.md#memory]
#include <algorithm>

#include "training/operator_list.hpp"

namespace nvlsim {
namespace {

double real(std::int64_t x) { return static_cast<double>(x); }

struct keeper {
  const layer_spec& l;
  const training_workload& w;
  token_counts t;
  double tp, hidden, element;  ///< bytes per element of a GEMM operand
  double mlp_element;          ///< the same in MLPs; frozen weights need no inputs for gradients
};

/// Queries and selected keys of an indexer.
double chosen(const keeper& k) {
  if (k.l.index_heads == 0) return 0;
  return k.t.sharded * (2 * real(k.l.index_heads * k.l.index_dim) + 4 * keys_of(k.l, real(k.w.seq_length)).pooled);
}

double grouped_query(const keeper& k) {
  const double q = real(k.l.heads * k.l.head_dim), out = real(k.l.heads * value_dim(k.l));
  const double kv = k.l.kv == kv_source::shared ? 0 : real(k.l.kv_heads * (k.l.head_dim + value_dim(k.l)));
  const double gate = k.l.attention_gate ? 2 * out : 0;  // the gate, and the output before it
  double kept = k.t.whole * (2 * (q + out + kv) + 2 * gate) / k.tp;
  if (k.element < 2) kept += k.t.whole * k.element * out / k.tp;
  return kept + chosen(k);
}

double latent(const keeper& k) {
  const mla_spec& a = k.l.mla;
  const double ranks = real(a.q_lora_rank + a.kv_lora_rank), rope = real(a.qk_rope_dim), v = real(a.v_head_dim);
  const double heads = real(k.l.heads) / k.tp, qk = real(a.qk_nope_dim + a.qk_rope_dim);
  const bool up = k.w.recompute.mla_up_proj;
  double kept = k.t.whole * (2 * 2 * ranks + 2 * rope);
  if (attends_sparsely(k.l, k.w.seq_length)) {  // absorbed queries, their output, and values by head
    kept += k.t.whole * heads *
                ((up ? 0 : 2 * (qk + real(a.kv_lora_rank) + rope)) + 2 * real(a.kv_lora_rank) + 2 * v) +
            chosen(k);
  } else {
    kept += k.t.whole * heads * (up ? 2 * v : 2 * (2 * qk + 2 * v));
  }
  if (k.element < 2) kept += k.t.whole * heads * v * k.element;
  return kept;
}

double compressed(const keeper& k) {
  const compressed_spec& c = k.l.compressed;
  const double dim = real(k.l.head_dim), q = real(k.l.heads) * dim / k.tp, overlap = k.l.sparse_keys > 0 ? 2 : 1;
  const double pooled = c.ratio > 0 ? 2 * overlap * (dim + real(k.l.index_dim)) : 0;
  const double shared = k.t.sharded * (2 * 2 * real(c.q_lora_rank) + 2 * 2 * dim + 2 * pooled);
  return shared +
         k.t.whole * (2 * 2 * q + (k.element < 2 ? k.element * q : 0) +
                      k.element * real(c.o_groups * c.o_lora_rank) / k.tp) +
         chosen(k);
}

/// Projected inputs, output of the scan and normalised output; states and convolution are recomputed.
double scan(const keeper& k, double keys) {
  const scan_spec& s = k.l.scan;
  const double width = real(s.heads * s.head_dim), inputs = 2 * width + keys + real(s.heads);
  return k.t.whole * (2 * inputs + 2 * width + k.element * width) / k.tp;
}

double mixer(const keeper& k) {
  const scan_spec& s = k.l.scan;
  switch (k.l.attention) {
    case attention_kind::none:
      return 0;
    case attention_kind::grouped_query:
      return grouped_query(k);
    case attention_kind::mla:
      return latent(k);
    case attention_kind::compressed:
      return compressed(k);
    case attention_kind::mamba:
      return scan(k, 2 * real(s.groups * s.state));
    case attention_kind::linear:
      return scan(k, 2 * real(s.key_heads * s.state));
  }
  return 0;
}

double experts(const keeper& k) {
  const recompute_spec& r = k.w.recompute;
  const moe_spec& x = k.l.moe;
  const double width = k.l.gated_mlp ? 2 : 1, seen = expert_width(k.hidden, k.l), etp = real(k.w.par.etp);
  const double routed = k.t.moe * real(x.top_k) * load_of_experts(k.l, k.w).rows, f = real(x.expert_ffn);
  double kept = 0;
  if (!r.moe) {
    kept += routed / etp * (k.mlp_element + 2) * seen;  // permuted input, unpermuted output
    kept += routed * (2 * width + (r.activation ? 0 : k.mlp_element)) * f / etp;
  }
  if (x.latent > 0) kept += k.t.moe / etp * k.mlp_element * seen;  // combined output before the up-projection
  return kept + k.t.whole * (2 * width + k.mlp_element) * real(x.shared_ffn) / k.tp;
}

}  // namespace

bool recomputes_layer(const recompute_spec& r, std::int64_t layer, bool predicts) {
  return r.full && (!r.block || (layer < r.num_layers && !predicts));  // Megatron-LM skips prediction modules
}

bytes stored_activations(const model& m, const layer_spec& l, const training_workload& w) {
  const token_counts t = tokens_of(w);
  const double streams = real(m.residual_streams), h = real(m.hidden);
  if (w.recompute.full) return bytes::from_base(t.sharded * 2 * h * streams);  // the layer's input only
  // Quantised recipes keep the quantised inputs of linear layers; attention also keeps its output in BF16.
  const double element = std::min(2.0, bytes_per_element(w.gemm_precision));
  const keeper k{l, w, t, real(w.par.tp), h, element, w.task == training_task::lora ? 0 : element};
  const double norm = (2 * streams + (w.recompute.layernorm ? 0 : k.element)) * h;
  const double mlp_norm = (2 * streams + (w.recompute.layernorm ? 0 : k.mlp_element)) * h;
  double kept = mixer(k);
  if (l.attention != attention_kind::none) kept += t.sharded * norm;
  if (l.routed()) {
    kept += t.moe / real(w.par.etp) * mlp_norm + experts(k);
  } else if (l.ffn_hidden > 0) {
    const double width = l.gated_mlp ? 2 : 1, f = real(l.ffn_hidden);
    // Frozen recipes with formats of 8 bits or fewer also store the activation's inputs in 8 bits
    // (activation_func_fp8_input_store). [assumed]
    const double inner = w.task == training_task::lora ? std::max(1.0, element) : 2;
    kept += t.sharded * mlp_norm;
    if (!w.recompute.mlp)
      kept += t.whole * (inner * width + (w.recompute.activation ? 0 : k.mlp_element)) * f / k.tp;
  }
  return bytes::from_base(kept);
}

}  // namespace nvlsim
