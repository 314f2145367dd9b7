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

class builder {
 public:
  builder(const training_context& c, double slowdown) : c_(c), slowdown_(slowdown) {}

  void kernel(work_kind kind, const char* name, const kernel_cost& k, precision p) {
    const seconds t = k.time * slowdown_;
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
  seconds duration() const { return out_.duration(); }
  costed_parts take() { return std::move(out_); }

 private:
  void add(work_kind kind, const char* name, seconds t) {
    if (t > seconds{}) out_.parts.push_back({kind, name, t, 1});
  }
  const training_context& c_;
  double slowdown_;
  costed_parts out_;
};

const gemm_params& gemm_of(const training_context& c, precision p) {
  const auto it = c.kernels.gemm.find(p);
  if (it == c.kernels.gemm.end())
    throw input_error({{"", "", "the stack has no " + std::string(name(p)) + " GEMM parameters for " + c.kernels.gpu, ""}});
  return it->second;
}

bool quantised(precision p) { return bytes_per_element(p) < 2; }

/// Layers with routed experts drift more between releases than dense ones.
double slowdown_of(const training_context& c, const layer_spec& l) {
  return c.slowdown * (l.routed() ? c.framework.moe_time_factor : 1.0);
}

/// Passes of unfused kernels over routed activations that are biased and clamped.
double activation_passes(const training_context& c) {
  return c.framework.unfused_activation_passes * (c.work.fused_expert_mlp ? c.framework.fused_activation_share : 1.0);
}

void price_forward(builder& b, const training_context& c, const layer_operator& o) {
  switch (o.what) {
    case layer_operator::type::linear:
      b.kernel(work_kind::gemm, o.name,
               gemm_cost(c.machine.gpu, gemm_of(c, o.operands), o.operands, {.m = o.m, .n = o.n, .k = o.k, .groups = o.groups}),
               o.operands);
      if (quantised(o.operands)) b.bytes_moved("quantise", o.m * o.k * o.groups * c.framework.quantise_bytes_forward);
      return;
    case layer_operator::type::attention:
      b.kernel(work_kind::attention, o.name, attention_forward_cost(c.machine.gpu, c.kernels.attention, o.shape), precision::bf16);
      return;
    case layer_operator::type::stream: b.bytes_moved(o.name, o.forward_bytes); return;
  }
}

void price_backward(builder& b, const training_context& c, const layer_operator& o) {
  switch (o.what) {
    case layer_operator::type::linear: {
      const gemm_params& g = gemm_of(c, o.operands);
      if (quantised(o.operands)) b.bytes_moved("quantise", o.m * o.n * o.groups * c.framework.quantise_bytes_backward);
      b.kernel(work_kind::gemm, o.name, gemm_cost(c.machine.gpu, g, o.operands, {.m = o.m, .n = o.k, .k = o.n, .groups = o.groups}), o.operands);
      if (c.work.task == training_task::lora) return;  // frozen weights have no gradient
      // The weight gradient adds to an FP32 accumulator: read and written.
      b.kernel(work_kind::gemm, o.name,
               gemm_cost(c.machine.gpu, g, o.operands,
                         {.m = o.n, .n = o.k, .k = o.m, .groups = o.groups, .output_element_bytes = 8}),
               o.operands);
      return;
    }
    case layer_operator::type::attention:
      b.kernel(work_kind::attention, o.name, attention_backward_cost(c.machine.gpu, c.kernels.attention, o.shape), precision::bf16);
      return;
    case layer_operator::type::stream: b.bytes_moved(o.name, o.backward_bytes); return;
  }
}

/// What the compute stream waits for tensor-parallel collectives, one direction: around attention and a dense MLP, or
/// around attention alone where routed experts take whole tokens.
void tensor_parallel(builder& b, const training_context& c, const layer_spec& l) {
  if (c.work.par.tp == 1) return;
  const comm_group g = tensor_group(c.work.par, c.work.place);
  const bytes size = bytes::from_base(c.tokens.whole * static_cast<double>(c.net.hidden) * 2);
  const double blocks = (l.attention == attention_kind::none ? 0 : 1) + (l.routed() && c.work.par.etp == 1 ? 0 : 1);
  const auto cost = [&](collective k) {
    return (collective_time(c.collectives, c.machine, k, size, g).time + c.framework.collective_launch) *
           (c.framework.tp_exposed * blocks);
  };
  if (c.work.par.sequence_parallel) {
    b.waiting(work_kind::tp, "tp.all_gather", cost(collective::all_gather));
    b.waiting(work_kind::tp, "tp.reduce_scatter", cost(collective::reduce_scatter));
  } else {
    b.waiting(work_kind::tp, "tp.all_reduce", cost(collective::all_reduce));
  }
}

/// Ring exchange of key and value shards, `passes` times round.
void context_parallel(builder& b, const training_context& c, const layer_spec& l, double passes) {
  if (c.work.par.cp == 1 || l.attention == attention_kind::none) return;
  const comm_group all = context_group(c.work.par, c.work.place);
  const double width = l.attention == attention_kind::mla
                           ? 2.0 * static_cast<double>(l.mla.kv_lora_rank + l.mla.qk_rope_dim)
                           : 2 * static_cast<double>(l.kv_heads * l.head_dim) / static_cast<double>(c.work.par.tp) * 2;
  const seconds hop = collective_time(c.collectives, c.machine, collective::send_recv, bytes::from_base(width * c.tokens.whole),
                                      {2, all.domains > 1 ? 2 : 1}).time + c.framework.collective_launch;
  b.waiting(work_kind::cp, "cp.exchange", hop * (static_cast<double>(c.work.par.cp - 1) * passes * c.framework.cp_exposed));
}

/// Copies of a token that leave for other members of a group of `n`, when it goes to `k` places.
double copies_sent(double n, double k, bool deduplicated) {
  const double reached = deduplicated ? n * (1 - std::pow(1 - 1 / n, k)) : k;
  return reached * (n - 1) / n;
}

/// Dispatch and combine of routed tokens, and what the host adds. [docs/models-and-assumptions.md#experts]
void expert_parallel(builder& b, const training_context& c, const layer_spec& l) {
  const parallelism& par = c.work.par;
  if (!l.routed() || par.ep == 1) return;
  const comm_group g = expert_group(par, c.work.place);
  const bool dedup = c.work.dispatcher == moe_dispatcher::deduplicated;
  const double k = static_cast<double>(l.moe.top_k), domains = g.domains;
  const double token_bytes = c.tokens.moe / static_cast<double>(par.etp) * static_cast<double>(c.net.hidden) * 2;
  const seconds nvlink = bytes::from_base(token_bytes * copies_sent(static_cast<double>(par.ep), k, dedup)) /
                         (c.machine.gpu.nvlink * c.framework.ep_nvlink_share);
  const seconds nic = domains > 1 ? bytes::from_base(token_bytes * copies_sent(domains, k, dedup)) /
                                        (c.machine.fabric.nic_bandwidth * c.framework.ep_nic_share)
                                  : seconds{};
  const seconds both = std::max(nvlink, nic) * (1 + c.framework.ep_combine_ratio) + c.framework.ep_launch * 2;
  b.waiting(work_kind::ep, "ep.exchange", both * (c.work.moe_overlap ? c.framework.ep_exposed_overlapped : c.framework.ep_exposed));
}

/// Eager launches of routed layers: the host takes its time for every local expert, whatever the GPU does.
void expert_host(builder& b, const training_context& c, const layer_spec& l, seconds gpu_time, bool is_forward) {
  if (!l.routed()) return;
  const double local = static_cast<double>(l.moe.experts) / static_cast<double>(c.work.par.ep);
  if (is_forward && c.work.dispatcher == moe_dispatcher::alltoall && c.work.par.ep > 1)
    b.waiting(work_kind::host, "expert counts", c.framework.moe_sync_per_expert * local);
  const double left = c.work.graphs == cuda_graphs::full_iteration ? 0.0
                      : c.work.graphs == cuda_graphs::partial      ? c.framework.graphed_host_share
                                                                   : 1.0;
  const seconds host = (c.framework.moe_host + c.framework.moe_host_per_expert * (c.work.token_drop ? 0.0 : local)) *
                       (left * (is_forward ? 1.0 : 1.5));
  const seconds all = gpu_time + b.duration();
  if (host > all) b.waiting(work_kind::host, "launches", host - all);
}

/// Activations of offloaded layers cross C2C while the layer computes; only the excess is waited for.
void offload(builder& b, const training_context& c, const layer_spec& l, seconds hidden_behind) {
  if (c.work.offload_layers == 0) return;
  const double share = std::min(1.0, static_cast<double>(c.work.offload_layers * c.work.par.pp) /
                                         static_cast<double>(c.net.layers.size()));
  const seconds transfer = stored_activations(c.net, l, c.work) / c.machine.gpu.c2c;
  b.waiting(work_kind::memory_bound, "offload", std::max(seconds{}, transfer - hidden_behind) * share);
}

/// FSDP gathers a layer's parameters for each pass; what does not hide behind the layer is waited for.
void fsdp_gather(builder& b, const training_context& c, const layer_spec& l, seconds compute, bool reduce) {
  if (c.work.sharding != data_parallel_sharding::fsdp) return;
  const local_parameters local = parameters_on_gpu(c.net, l, c.work.par);
  seconds traffic = parameter_gather(c, local).time;
  if (reduce && c.work.task != training_task::lora) traffic += gradient_reduction(c, local).time;
  const seconds hidden = std::min(traffic, compute);
  b.waiting(work_kind::dp, "fsdp", traffic - hidden + hidden * c.framework.dp_interference);
}

void append(costed_parts& to, costed_parts from) {
  to.parts.insert(to.parts.end(), std::make_move_iterator(from.parts.begin()), std::make_move_iterator(from.parts.end()));
  to.energy += from.energy;
}

/// A collective over dense and expert parameters, each in its own group.
priced_transfer data_collective(const training_context& c, collective kind, local_parameters p, double element_bytes) {
  const auto price = [&](double parameters, comm_group g) {
    if (parameters <= 0) return priced_transfer{};
    return price_transfer(c.collectives, c.machine, kind, bytes::from_base(parameters * element_bytes), g);
  };
  return price(p.dense, data_group(c.work.par, c.work.place)) + price(p.expert, expert_data_group(c.work.par, c.work.place));
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
    : machine(p), kernels(kernels_for(s, p.gpu)), framework(*s.training), collectives(s.collectives), net(m), work(w),
      tokens(tokens_of(w)) {
  const double doublings = std::log2(std::max(1.0, static_cast<double>(w.par.gpus()) / 8));
  slowdown = framework.time_factor * (1 + framework.jitter_per_doubling * doublings);
}

costed_parts layer_forward(const training_context& c, const layer_spec& l) {
  builder kernels(c, slowdown_of(c, l));
  for (const layer_operator& o : layer_operators(c.net, l, c.work, activation_passes(c))) price_forward(kernels, c, o);
  costed_parts out = kernels.take();
  const seconds compute = out.duration();
  builder b(c, 1);
  tensor_parallel(b, c, l);
  context_parallel(b, c, l, 1);
  expert_parallel(b, c, l);
  offload(b, c, l, compute);
  fsdp_gather(b, c, l, compute, false);
  expert_host(b, c, l, compute, true);
  append(out, b.take());
  return out;
}

costed_parts layer_backward(const training_context& c, const layer_spec& l) {
  const auto operators = layer_operators(c.net, l, c.work, activation_passes(c));
  builder kernels(c, slowdown_of(c, l));
  for (const layer_operator& o : operators)
    if (o.recomputed) price_forward(kernels, c, o);
  for (auto o = operators.rbegin(); o != operators.rend(); ++o) price_backward(kernels, c, *o);
  costed_parts out = kernels.take();
  const seconds compute = out.duration();
  builder b(c, 1);
  tensor_parallel(b, c, l);
  if (c.work.recompute.full) tensor_parallel(b, c, l);
  context_parallel(b, c, l, 2);  // keys and values again, and their gradients
  expert_parallel(b, c, l);
  offload(b, c, l, compute);
  fsdp_gather(b, c, l, compute, true);
  expert_host(b, c, l, compute, false);
  append(out, b.take());
  return out;
}

costed_parts embedding_forward(const training_context& c) {
  builder b(c, c.slowdown);
  b.bytes_moved("embedding", c.tokens.whole * static_cast<double>(c.net.hidden) * 2 * 2);
  return b.take();
}

costed_parts embedding_backward(const training_context& c) {
  builder b(c, c.slowdown);
  if (c.work.task != training_task::lora) b.bytes_moved("embedding", c.tokens.whole * static_cast<double>(c.net.hidden) * (2 + 8));
  return b.take();
}

costed_parts head_forward(const training_context& c) {
  builder b(c, c.slowdown);
  const double v = static_cast<double>(c.net.vocab) / static_cast<double>(c.work.par.tp);
  const double h = static_cast<double>(c.net.hidden);
  b.kernel(work_kind::gemm, "lm_head",
           gemm_cost(c.machine.gpu, gemm_of(c, precision::bf16), precision::bf16, {.m = c.tokens.whole, .n = v, .k = h}),
           precision::bf16);
  b.bytes_moved("cross_entropy", c.tokens.whole * v * 2 * 3);
  costed_parts out;
  out.append(b.take(), 1 + c.net.mtp_layers);
  return out;
}

costed_parts head_backward(const training_context& c) {
  builder b(c, c.slowdown);
  const double v = static_cast<double>(c.net.vocab) / static_cast<double>(c.work.par.tp);
  const double h = static_cast<double>(c.net.hidden);
  const gemm_params& g = gemm_of(c, precision::bf16);
  b.bytes_moved("cross_entropy", c.tokens.whole * v * 2 * 3);
  b.kernel(work_kind::gemm, "lm_head", gemm_cost(c.machine.gpu, g, precision::bf16, {.m = c.tokens.whole, .n = h, .k = v}),
           precision::bf16);
  if (c.work.task != training_task::lora)
    b.kernel(work_kind::gemm, "lm_head",
             gemm_cost(c.machine.gpu, g, precision::bf16, {.m = v, .n = h, .k = c.tokens.whole, .output_element_bytes = 8}),
             precision::bf16);
  costed_parts out;
  out.append(b.take(), 1 + c.net.mtp_layers);
  return out;
}

costed_parts optimizer_step(const training_context& c, double local, double updated) {
  builder b(c, c.slowdown);
  const double requantised = quantised(c.work.gemm_precision) ? local * 4 : 0.0;  // read BF16, write 8 bits twice
  const kernel_cost k = stream_cost(c.machine.gpu, c.kernels.stream,
                                    bytes::from_base(updated * c.framework.optimizer_bytes + requantised));
  b.kernel(work_kind::optimizer, "optimizer", k, precision::bf16);
  return b.take();
}

priced_transfer gradient_reduction(const training_context& c, local_parameters p) {
  const double share = c.work.task == training_task::lora ? lora_share : 1.0;
  const collective kind = c.work.sharding == data_parallel_sharding::replicated ? collective::all_reduce
                                                                                : collective::reduce_scatter;
  return data_collective(c, kind, p, share * c.framework.gradient_bytes);
}

priced_transfer parameter_gather(const training_context& c, local_parameters p) {
  const double share = c.work.task == training_task::lora && c.work.sharding != data_parallel_sharding::fsdp ? lora_share : 1.0;
  const double element = quantised(c.work.gemm_precision) ? 1.0 : 2.0;  // 8-bit recipes gather 8-bit parameters
  return data_collective(c, collective::all_gather, p, share * element);
}

priced_transfer pipeline_send(const training_context& c, bool crosses_domain) {
  const bytes size = bytes::from_base(c.tokens.sharded * static_cast<double>(c.net.hidden) * 2);
  return price_transfer(c.collectives, c.machine, collective::send_recv, size, {2, crosses_domain ? 2 : 1});
}

double local_vocabulary_parameters(const training_context& c) {
  return static_cast<double>(c.net.vocab * c.net.hidden) / static_cast<double>(c.work.par.tp);
}

}  // namespace nvlsim
