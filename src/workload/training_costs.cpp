#include "workload/training_costs.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "nvlsim/collectives.hpp"
#include "nvlsim/diagnostics.hpp"

namespace nvlsim {
namespace {

/// LoRA trains adapters of about this share of the parameters (rank 16 to 32 on attention). [assumed]
constexpr double lora_share = 0.002;

struct linear {
  const char* name;
  double n, k;  ///< output and input width on this GPU
  bool recomputed;
};

class builder {
 public:
  explicit builder(const training_context& c) : c_(c) {}

  void kernel(work_kind kind, const char* name, const kernel_cost& k, precision p) {
    const seconds t = k.time * c_.slowdown;
    add(kind, name, t);
    out_.energy += kernel_power(c_.machine.gpu, p, k) * t;
  }
  void bytes_moved(const char* name, double moved) {
    kernel(work_kind::memory_bound, name, stream_cost(c_.machine.gpu, c_.kernels.stream, bytes::from_base(moved)),
           precision::bf16);
  }
  void waiting(work_kind kind, const char* name, seconds t) {
    add(kind, name, t);
    out_.energy += c_.machine.gpu.idle_power * t;
  }
  costed_parts take() { return std::move(out_); }

 private:
  void add(work_kind kind, const char* name, seconds t) {
    if (t > seconds{}) out_.parts.push_back({kind, name, t, 1});
  }
  const training_context& c_;
  costed_parts out_;
};

std::vector<linear> linears(const training_context& c, const layer_spec& l) {
  const double tp = static_cast<double>(c.work.par.tp);
  const double h = static_cast<double>(c.net.hidden);
  const double q = static_cast<double>(l.heads * l.head_dim), kv = static_cast<double>(l.kv_heads * l.head_dim);
  const double f = static_cast<double>(l.ffn_hidden);
  const recompute_spec& r = c.work.recompute;
  return {{"qkv", (q + 2 * kv) / tp, h, r.full},
          {"attention.out", h, q / tp, r.full},
          {"mlp.up", f * (l.gated_mlp ? 2 : 1) / tp, h, r.full || r.mlp},
          {"mlp.down", h, f / tp, r.full}};
}

const gemm_params& gemm_of(const training_context& c, precision p) {
  const auto it = c.kernels.gemm.find(p);
  if (it == c.kernels.gemm.end())
    throw input_error({{"", "", "the stack has no " + std::string(name(p)) + " GEMM parameters for " + c.kernels.gpu, ""}});
  return it->second;
}

bool quantised(precision p) { return bytes_per_element(p) < 2; }

void forward_linear(builder& b, const training_context& c, const linear& x) {
  const precision p = c.work.gemm_precision;
  b.kernel(work_kind::gemm, x.name, gemm_cost(c.machine.gpu, gemm_of(c, p), p, {.m = c.tokens, .n = x.n, .k = x.k}), p);
  if (quantised(p)) b.bytes_moved("quantise", c.tokens * x.k * c.framework.quantise_bytes_forward);
}

void backward_linear(builder& b, const training_context& c, const linear& x) {
  const precision p = c.work.gemm_precision;
  const gemm_params& g = gemm_of(c, p);
  if (quantised(p)) b.bytes_moved("quantise", c.tokens * x.n * c.framework.quantise_bytes_backward);
  b.kernel(work_kind::gemm, x.name, gemm_cost(c.machine.gpu, g, p, {.m = c.tokens, .n = x.k, .k = x.n}), p);
  if (c.work.task == training_task::lora) return;  // frozen weights have no gradient
  // The weight gradient adds to an FP32 accumulator: read and written.
  b.kernel(work_kind::gemm, x.name,
           gemm_cost(c.machine.gpu, g, p, {.m = x.n, .n = x.k, .k = c.tokens, .output_element_bytes = 8}), p);
}

attention_shape attention_of(const training_context& c, const layer_spec& l) {
  const double tp = static_cast<double>(c.work.par.tp), cp = static_cast<double>(c.work.par.cp);
  const double s = static_cast<double>(c.work.seq_length);
  attention_shape a;
  a.batch = static_cast<double>(c.work.micro_batch_size);
  a.heads = static_cast<double>(l.heads) / tp;
  a.kv_heads = std::max(1.0, static_cast<double>(l.kv_heads) / tp);
  a.qk_dim = a.v_dim = static_cast<double>(l.head_dim);
  a.queries = s / cp;
  a.pairs = s * (s + 1) / 2 / cp;  // causal, balanced over context-parallel ranks
  a.fp8 = c.work.fp8_attention;
  return a;
}

// Bytes of the memory-bound operations, forward. [docs/models-and-assumptions.md#memory-bound]
double norm_bytes(const training_context& c) {  // norm reads and writes, residual add reads two and writes one
  return c.sharded_tokens * static_cast<double>(c.net.hidden) * 2 * 5;
}
double rotary_bytes(const training_context& c, const layer_spec& l) {
  return 2 * c.tokens * static_cast<double>((l.heads + l.kv_heads) * l.head_dim) / static_cast<double>(c.work.par.tp) * 2;
}
double activation_bytes(const training_context& c, const layer_spec& l) {
  return c.tokens * static_cast<double>(l.ffn_hidden) / static_cast<double>(c.work.par.tp) * 2 * (l.gated_mlp ? 3 : 2);
}
constexpr double backward_bytes = 1.5;  // of the forward's: gradient and input read, gradient written [assumed]

/// What the compute stream waits for tensor-parallel collectives around attention and MLP, one direction.
void tensor_parallel(builder& b, const training_context& c) {
  if (c.work.par.tp == 1) return;
  const comm_group g = tensor_group(c.work.par, c.work.place);
  const bytes size = bytes::from_base(c.tokens * static_cast<double>(c.net.hidden) * 2);
  const auto cost = [&](collective k) {
    return (collective_time(c.collectives, c.machine, k, size, g).time + c.framework.collective_launch) *
           c.framework.tp_exposed;
  };
  if (c.work.par.sequence_parallel) {
    b.waiting(work_kind::tp, "tp.all_gather", cost(collective::all_gather) * 2);
    b.waiting(work_kind::tp, "tp.reduce_scatter", cost(collective::reduce_scatter) * 2);
  } else {
    b.waiting(work_kind::tp, "tp.all_reduce", cost(collective::all_reduce) * 2);
  }
}

/// Ring exchange of key and value shards, `passes` times round.
void context_parallel(builder& b, const training_context& c, const layer_spec& l, double passes) {
  if (c.work.par.cp == 1) return;
  const comm_group all = context_group(c.work.par, c.work.place);
  const double shard = 2 * static_cast<double>(l.kv_heads * l.head_dim) / static_cast<double>(c.work.par.tp) * 2 * c.tokens;
  const seconds hop = collective_time(c.collectives, c.machine, collective::send_recv, bytes::from_base(shard),
                                      {2, all.domains > 1 ? 2 : 1}).time + c.framework.collective_launch;
  b.waiting(work_kind::cp, "cp.exchange", hop * (static_cast<double>(c.work.par.cp - 1) * passes * c.framework.cp_exposed));
}

/// Activations of offloaded layers cross C2C while the layer computes; only the excess is waited for.
void offload(builder& b, const training_context& c, const layer_spec& l, seconds hidden_behind) {
  if (c.work.offload_layers == 0) return;
  const double share = std::min(1.0, static_cast<double>(c.work.offload_layers * c.work.par.pp) /
                                         static_cast<double>(c.net.layers.size()));
  const seconds transfer = stored_activations(c, l) / c.machine.gpu.c2c;
  b.waiting(work_kind::memory_bound, "offload", std::max(seconds{}, transfer - hidden_behind) * share);
}

/// FSDP gathers a layer's parameters for each pass; what does not hide behind the layer is waited for.
void fsdp_gather(builder& b, const training_context& c, const layer_spec& l, seconds compute, bool reduce) {
  if (c.work.sharding != data_parallel_sharding::fsdp) return;
  const double local = local_layer_parameters(c, l);
  seconds traffic = parameter_gather(c, local);
  if (reduce && c.work.task != training_task::lora) traffic += gradient_reduction(c, local);
  const seconds hidden = std::min(traffic, compute);
  b.waiting(work_kind::dp, "fsdp", traffic - hidden + hidden * c.framework.dp_interference);
}

void append(costed_parts& to, costed_parts from) {
  to.parts.insert(to.parts.end(), std::make_move_iterator(from.parts.begin()), std::make_move_iterator(from.parts.end()));
  to.energy += from.energy;
}

/// Forward work of a layer without communication; `only_recomputed` keeps what the backward pass must redo.
costed_parts layer_kernels(const training_context& c, const layer_spec& l, bool only_recomputed) {
  builder b(c);
  const recompute_spec& r = c.work.recompute;
  const auto wanted = [&](bool recomputed) { return !only_recomputed || r.full || recomputed; };
  if (wanted(r.layernorm)) b.bytes_moved("norm", norm_bytes(c));
  const auto x = linears(c, l);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == 1) {
      if (wanted(false)) b.bytes_moved("rotary", rotary_bytes(c, l));
      if (wanted(r.core_attention))
        b.kernel(work_kind::attention, "attention",
                 attention_forward_cost(c.machine.gpu, c.kernels.attention, attention_of(c, l)), precision::bf16);
    }
    if (i == 2 && wanted(r.layernorm)) b.bytes_moved("norm", norm_bytes(c));
    if (i == 3 && wanted(r.mlp || r.activation)) b.bytes_moved("activation", activation_bytes(c, l));
    if (wanted(x[i].recomputed)) forward_linear(b, c, x[i]);
  }
  return b.take();
}

}  // namespace

seconds costed_parts::duration() const {
  seconds t;
  for (const work_part& p : parts) t += p.duration * p.repeat;
  return t;
}

void costed_parts::append(const costed_parts& other, std::int64_t times) {
  if (times == 0) return;
  for (work_part p : other.parts) {
    p.repeat *= static_cast<int>(times);
    parts.push_back(std::move(p));
  }
  energy += other.energy * static_cast<double>(times);
}

training_context::training_context(const platform& p, const stack& s, const model& m, const training_workload& w)
    : machine(p), kernels(kernels_for(s, p.gpu)), framework(*s.training), collectives(s.collectives), net(m), work(w) {
  tokens = static_cast<double>(w.micro_batch_size * w.seq_length) / static_cast<double>(w.par.cp);
  sharded_tokens = w.par.sequence_parallel ? tokens / static_cast<double>(w.par.tp) : tokens;
  const double doublings = std::log2(std::max(1.0, static_cast<double>(w.par.gpus()) / 8));
  slowdown = framework.time_factor * (1 + framework.jitter_per_doubling * doublings);
}

costed_parts layer_forward(const training_context& c, const layer_spec& l) {
  costed_parts out = layer_kernels(c, l, false);
  const seconds compute = out.duration();
  builder b(c);
  tensor_parallel(b, c);
  context_parallel(b, c, l, 1);
  offload(b, c, l, compute);
  fsdp_gather(b, c, l, compute, false);
  append(out, b.take());
  return out;
}

costed_parts layer_backward(const training_context& c, const layer_spec& l) {
  costed_parts out = c.work.recompute.any() ? layer_kernels(c, l, true) : costed_parts{};
  builder k(c);
  const auto x = linears(c, l);
  for (std::size_t i = x.size(); i-- > 0;) {
    backward_linear(k, c, x[i]);
    if (i == 3) k.bytes_moved("activation", activation_bytes(c, l) * backward_bytes);
    if (i == 2 || i == 0) k.bytes_moved("norm", norm_bytes(c) * backward_bytes);
    if (i == 1) {
      k.kernel(work_kind::attention, "attention",
               attention_backward_cost(c.machine.gpu, c.kernels.attention, attention_of(c, l)), precision::bf16);
      k.bytes_moved("rotary", rotary_bytes(c, l) * backward_bytes);
    }
  }
  append(out, k.take());
  const seconds compute = out.duration();
  builder b(c);
  tensor_parallel(b, c);
  if (c.work.recompute.full) tensor_parallel(b, c);
  context_parallel(b, c, l, 2);  // keys and values again, and their gradients
  offload(b, c, l, compute);
  fsdp_gather(b, c, l, compute, true);
  append(out, b.take());
  return out;
}

costed_parts embedding_forward(const training_context& c) {
  builder b(c);
  b.bytes_moved("embedding", c.tokens * static_cast<double>(c.net.hidden) * 2 * 2);
  return b.take();
}

costed_parts embedding_backward(const training_context& c) {
  builder b(c);
  if (c.work.task != training_task::lora) b.bytes_moved("embedding", c.tokens * static_cast<double>(c.net.hidden) * (2 + 8));
  return b.take();
}

costed_parts head_forward(const training_context& c) {
  builder b(c);
  const double v = static_cast<double>(c.net.vocab) / static_cast<double>(c.work.par.tp);
  const double h = static_cast<double>(c.net.hidden);
  b.kernel(work_kind::gemm, "lm_head",
           gemm_cost(c.machine.gpu, gemm_of(c, precision::bf16), precision::bf16, {.m = c.tokens, .n = v, .k = h}),
           precision::bf16);
  b.bytes_moved("cross_entropy", c.tokens * v * 2 * 3);
  return b.take();
}

costed_parts head_backward(const training_context& c) {
  builder b(c);
  const double v = static_cast<double>(c.net.vocab) / static_cast<double>(c.work.par.tp);
  const double h = static_cast<double>(c.net.hidden);
  const gemm_params& g = gemm_of(c, precision::bf16);
  b.bytes_moved("cross_entropy", c.tokens * v * 2 * 3);
  b.kernel(work_kind::gemm, "lm_head", gemm_cost(c.machine.gpu, g, precision::bf16, {.m = c.tokens, .n = h, .k = v}),
           precision::bf16);
  if (c.work.task != training_task::lora)
    b.kernel(work_kind::gemm, "lm_head",
             gemm_cost(c.machine.gpu, g, precision::bf16, {.m = v, .n = h, .k = c.tokens, .output_element_bytes = 8}),
             precision::bf16);
  return b.take();
}

costed_parts optimizer_step(const training_context& c, double local, double updated) {
  builder b(c);
  const double requantised = quantised(c.work.gemm_precision) ? local * 4 : 0.0;  // read BF16, write 8 bits twice
  const kernel_cost k = stream_cost(c.machine.gpu, c.kernels.stream,
                                    bytes::from_base(updated * c.framework.optimizer_bytes + requantised));
  b.kernel(work_kind::optimizer, "optimizer", k, precision::bf16);
  return b.take();
}

seconds gradient_reduction(const training_context& c, double parameters) {
  const double share = c.work.task == training_task::lora ? lora_share : 1.0;
  const collective kind = c.work.sharding == data_parallel_sharding::replicated ? collective::all_reduce
                                                                                : collective::reduce_scatter;
  return collective_time(c.collectives, c.machine, kind,
                         bytes::from_base(parameters * share * c.framework.gradient_bytes),
                         data_group(c.work.par, c.work.place)).time;
}

seconds parameter_gather(const training_context& c, double parameters) {
  const double share = c.work.task == training_task::lora && c.work.sharding != data_parallel_sharding::fsdp ? lora_share : 1.0;
  const double element = quantised(c.work.gemm_precision) ? 1.0 : 2.0;  // 8-bit recipes gather 8-bit parameters
  return collective_time(c.collectives, c.machine, collective::all_gather,
                         bytes::from_base(parameters * share * element), data_group(c.work.par, c.work.place)).time;
}

seconds pipeline_send(const training_context& c, bool crosses_domain) {
  const bytes size = bytes::from_base(c.sharded_tokens * static_cast<double>(c.net.hidden) * 2);
  return collective_time(c.collectives, c.machine, collective::send_recv, size, {2, crosses_domain ? 2 : 1}).time;
}

bytes stored_activations(const training_context& c, const layer_spec& l) {
  const double tp = static_cast<double>(c.work.par.tp);
  const double h = static_cast<double>(c.net.hidden), d = static_cast<double>(l.head_dim);
  const double a = static_cast<double>(l.heads), kv = static_cast<double>(l.kv_heads);
  const double f = static_cast<double>(l.ffn_hidden);
  const double sharded = c.sharded_tokens / c.tokens;  // 1/TP with sequence parallelism
  const recompute_spec& r = c.work.recompute;
  if (r.full) return bytes::from_base(c.tokens * 2 * h * sharded);  // the layer's input alone
  // Quantised recipes keep the inputs of linear layers as they were quantised; attention keeps its output in BF16 too.
  const double input = bytes_per_element(c.work.gemm_precision) < 2 ? bytes_per_element(c.work.gemm_precision) : 2.0;
  const double norms = 2 * (2 + (r.layernorm ? 0 : input)) * h * sharded;  // input and output of both
  const double attention = (2 * d * (2 * a + 2 * kv) + (input < 2 ? input * a * d : 0)) / tp;  // q, k, v, output
  const double width = l.gated_mlp ? 2 : 1;
  const double mlp = r.mlp ? 0 : (2 * width + (r.activation ? 0 : input)) * f / tp;  // up (and gate), product
  return bytes::from_base(c.tokens * (norms + attention + mlp));
}

double local_layer_parameters(const training_context& c, const layer_spec& l) {
  return static_cast<double>(layer_parameters(c.net, l)) / static_cast<double>(c.work.par.tp);
}

double local_vocabulary_parameters(const training_context& c) {
  return static_cast<double>(c.net.vocab * c.net.hidden) / static_cast<double>(c.work.par.tp);
}

}  // namespace nvlsim
