#include "training/operator_list.hpp"

#include <algorithm>

#include "nvlsim/compute/elementwise.hpp"

namespace nvlsim {

using compute::elementwise_bytes;

double tensor_bytes(const training_workload& w) { return std::max(2.0, bytes_per_element(w.gemm_precision)); }

// Quantised recipes keep the quantised inputs of linear layers; attention also keeps its output in BF16. Recipes
// of frozen weights store inputs of activations in 8 bits (activation_func_fp8_input_store). [assumed]
stored_formats stored_formats_of(const training_workload& w, const training_profile& framework) {
  stored_formats k;
  k.operand = std::min(2.0, bytes_per_element(w.gemm_precision));
  const bool frozen = w.frozen_layers(), adapters = w.task == training_task::lora,
             stated = adapters && w.lora.rank > 0;
  const auto input = [&](bool adapted) { return frozen ? (stated && adapted ? 2.0 : 0.0) : k.operand; };
  k.attention_input = adapters && !stated ? k.operand : input(w.lora.qkv);
  k.mlp_input = input(w.lora.fc1);
  k.mlp_product = input(w.lora.fc2);
  k.inner = keeps_fp8_inputs(w) ? 1 : 2;
  k.activation_input = keeps_fp8_inputs(w) ? 1 : frozen ? std::max(1.0, k.operand) : 2;
  k.expert_output = framework.expert_output_bytes;
  // Of softmax 2 B; with dropout its mask and output, too. [Korthikanti et al., arXiv 2205.05198]
  k.score = framework.score_passes > 2 ? 5 : framework.score_passes > 0 ? 2 : 0;
  return k;
}

operator_list::operator_list(const model& m, const layer_spec& l, const training_workload& w,
                             const training_profile& f)
    : layer(l), workload(w), framework(f), tokens(tokens_of(w)), hidden(real(m.hidden)), tp(real(w.par.tp)),
      kept(stored_formats_of(w, f)), matrices_(layer_matrices(l, m.hidden)), streams_(real(m.residual_streams)),
      wider_(tensor_bytes(w) / 2) {
  // One stream is read twice and written once. With n streams, Megatron-Core's kernels read all of them for their
  // norm, for the projection that gives the weights, for the block's input and for the mixed residual, write that
  // and the expanded output, and add the two. Backward, four gradients of the streams are added up.
  // [docs/models-and-assumptions.md#sparse-attention]
  const double one = elementwise_bytes("residual");
  residual_bytes_ = streams_ > 1 ? 2 * (9 * streams_ + 2) : one;
  residual_backward_bytes_ = streams_ > 1 ? 2 * (21 * streams_ + 3) : one;
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
  if (part == layer_part::mixer && layer.scan.heads == 0) run_in(o, workload.kept.attention);
  return o;
}

bool adapted(const layer_spec& l, const lora_spec& lora, matrix name) {
  switch (name) {
    case matrix::query:
    case matrix::key_value:
    case matrix::attention_gate:
      return lora.qkv && l.attention == attention_kind::grouped_query;
    case matrix::output:
      return lora.proj;
    case matrix::up:
    case matrix::shared_up:
    case matrix::expert_up:
      return lora.fc1;
    case matrix::down:
    case matrix::shared_down:
    case matrix::expert_down:
      return lora.fc2;
    default:
      return false;
  }
}

layer_operator& operator_list::project(std::initializer_list<matrix> all, bool again) {
  gemm_size s;
  matrix first = *all.begin();
  int found = 0;
  for (const weight_matrix& w : matrices_) {
    if (std::find(all.begin(), all.end(), w.name) == all.end()) continue;
    const rank_matrix r = on_rank(w, tp);
    if (found++ == 0) {
      first = w.name;
      s = {w.replicated() ? tokens.sharded : tokens.whole, 0, r.in, r.groups};
    }
    s.n += r.out;
  }
  return linear(gemm_name(first, found > 1), s, again);
}

double operator_list::width_of(matrix name) const {
  const auto it =
      std::find_if(matrices_.begin(), matrices_.end(), [&](const weight_matrix& w) { return w.name == name; });
  return it == matrices_.end() ? 0 : on_rank(*it, tp).out;
}

// Kernels counted in Megatron-Bridge (peft/utils.py, ParallelLinearAdapter, and peft/lora_layers.py): two
// products, a scaling and an addition forward; backward two gradients of each product, of the scaling, and the
// addition of the input's. Where ranks divide the projection, both ways a collective with the copies around it,
// and beside a row another and, with sequence parallelism, what shards the tokens. A kernel is half an operator:
// the 22 operators of a dense layer, both ways, are 43 kernels of Transformer Engine.
// [docs/models-and-assumptions.md#host]
void operator_list::adapt(bool target, layer_operator projection, adapted_side side) {
  constexpr double kernel = 0.5;
  const double rank = real(workload.lora.rank);
  if (workload.task != training_task::lora || !target || rank == 0) return;
  const layer_operator& p = projection;
  for (const gemm_size& narrow : {gemm_size{p.m, rank, p.k, p.groups}, gemm_size{p.m, p.n, rank, p.groups}}) {
    layer_operator& o = linear("adapter", narrow);
    o.operands = precision::bf16;
    o.adapter = true;
    o.launches = kernel;
  }
  const bool row = side == adapted_side::row,
             divided = part == layer_part::experts ? workload.par.etp > 1 : tp > 1;
  const double between = row ? 2.5 + (workload.par.sequence_parallel ? 1 : 0) : 2;  // 3 forward and 2 backward
  stream("adapter.add", p.groups * p.m * p.n * elementwise_bytes("residual"), false, 1).launches =
      kernel * (2 + (divided ? between : 0));
}

// In BF16 layers everything is in BF16.
void operator_list::run_in(layer_operator& o, const std::optional<precision>& format) const {
  if (format && workload.gemm_precision != precision::bf16) o.operands = *format;
}

layer_operator& operator_list::stream(const char* name, double moved, bool again, double backward_share) {
  layer_operator& o = add(layer_operator::type::stream, name, again);
  o.forward_bytes = moved * wider_, o.backward_bytes = moved * wider_ * backward_share;
  return o;
}

void operator_list::norm(double n, const kept_by_norm& k) {
  // Backward the norm reads its input and a gradient and writes a gradient, to which the residual's is added.
  const double forward = elementwise_bytes("norm") + residual_bytes_;
  const double after = layer.post_norms ? elementwise_bytes("norm") : 0;
  const bool again = k.alone && workload.recompute.layernorm;
  stream("norm", n * hidden * (forward + after), again,
         (elementwise_bytes("norm") + 2 + after + residual_backward_bytes_) / (forward + after))
      .launches = layer.post_norms ? 2 : 1;
  keep(n * 2 * hidden * (k.streams_again ? 1 : streams_), k.input_away);
  if (!again) keep(n * k.output * hidden, k.output_away);
}

}  // namespace nvlsim
