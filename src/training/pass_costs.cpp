#include "training/pass_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/compute/elementwise.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/model/matrices.hpp"
#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/plan/part_facts.hpp"
#include "training/encoder.hpp"
#include "training/pass_cache.hpp"

namespace nvlsim {
namespace {

bool quantised(precision p) { return bytes_per_element(p) < 2; }

class builder {
 public:
  builder(const training_context& c, double slowdown) : c_(c), slowdown_(slowdown) {}

  void kernel(part_kind kind, const char* name, const kernel_cost& k, precision p) {
    kernel(kind, name, k, p, facts_of(c_.machine.gpu, p, k));
  }
  void kernel(part_kind kind, const char* name, const kernel_cost& k, precision p, part_facts f) {
    const seconds t = k.time * slowdown_;
    f.alone *= slowdown_, f.latency *= slowdown_;
    add(kind, name, t, f);
    out_.energy += kernel_power(c_.machine.gpu, p, k) * t;
  }
  void gemm(const layer_operator& o, const gemm_params& params, const gemm_shape& s) {
    const kernel_cost k = gemm_cost(c_.machine.gpu, params, o.operands, s);
    kernel(part_kind::gemm, o.name, k, o.operands, facts_of(c_.machine.gpu, o.operands, k, s));
  }
  /// Casts a GEMM operand of `elements` per group, if its format has 8 bits or fewer.
  void quantise(const layer_operator& o, double elements, double element_bytes) {
    if (quantised(o.operands)) bytes_moved("quantise", elements * o.groups * element_bytes, o.part);
  }
  void attention(const char* name, const kernel_cost& k, const attention_shape& s) {
    kernel(part_kind::attention, name, k, precision::bf16, facts_of(c_.machine.gpu, k, s));
  }
  /// Kernels around experts take `moe_time_factor`. [docs/models-and-assumptions.md#experts]
  void bytes_moved(const char* name, double moved, layer_part part = layer_part::mixer) {
    kernel_cost k = stream_cost(c_.machine.gpu, c_.kernels.stream, bytes::from_base(moved));
    if (part == layer_part::router || part == layer_part::experts) k.time *= c_.framework.moe_time_factor;
    kernel(part_kind::memory_bound, name, k, precision::bf16);
  }
  void waiting(part_kind kind, const char* name, seconds t, const part_facts& f) {
    add(kind, name, t, f);
    out_.energy += c_.machine.gpu.idle_power * t;
  }
  seconds duration() const { return out_.duration(); }
  costed_parts take() { return std::exchange(out_, {}); }

 private:
  void add(part_kind kind, const char* name, seconds t, const part_facts& f) {
    if (!(t > seconds{})) return;
    out_.parts.push_back({kind, name, t, 1, c_.passes ? nullptr : std::make_shared<part_facts>(f)});
  }
  const training_context& c_;
  double slowdown_;
  costed_parts out_;
};

/// Tensor cores run FP16 at the rate of BF16, and published FP16 steps were fitted that way.
precision rate_format(precision p) { return p == precision::fp16 ? precision::bf16 : p; }

std::string no_rate_of(const kernel_profile& kernels, precision p) {
  return fmt::format("the stack has no {} GEMM rate for {} and cannot run this step", name(p), kernels.gpu);
}

const gemm_params& gemm_of(const training_context& c, precision p) {
  const auto it = c.kernels.gemm.find(rate_format(p));
  if (it == c.kernels.gemm.end()) throw input_error({{"", "/workload/precision", no_rate_of(c.kernels, p), ""}});
  return it->second;
}

kernel_cost scan_cost(const training_context& c, const layer_operator& o, bool forward) {
  const flop_rate rate = gemm_of(c, precision::bf16).tensor_rate;
  const double words = c.framework.scan_words_per_sm;
  return forward ? scan_forward_cost(c.machine.gpu, rate, words, c.kernels.stream, o.scan)
                 : scan_backward_cost(c.machine.gpu, rate, words, c.kernels.stream, o.scan);
}

kernel_cost attention_cost(const training_context& c, const attention_shape& s, bool forward) {
  const gpu_spec& gpu = c.machine.gpu;
  const double passes = c.framework.score_passes;
  if (passes > 0)
    return (forward ? unfused_attention_forward_cost : unfused_attention_backward_cost)(
        gpu, c.kernels, gemm_of(c, precision::bf16), s, passes);
  return forward ? attention_forward_cost(gpu, c.kernels.attention, s)
                 : attention_backward_cost(gpu, c.kernels.attention, s);
}

void price_forward(builder& b, const training_context& c, const layer_operator& o) {
  switch (o.what) {
    case layer_operator::type::linear:
      b.gemm(o, gemm_of(c, o.operands), {.m = o.m, .n = o.n, .k = o.k, .groups = o.groups});
      if (o.cast_input) b.quantise(o, o.m * o.k, c.framework.quantise_bytes_forward);
      return;
    case layer_operator::type::attention:
      b.attention(o.name, attention_cost(c, o.shape, true), o.shape);
      return;
    case layer_operator::type::sparse_attention:
      b.kernel(part_kind::attention, o.name,
               sparse_attention_forward_cost(c.machine.gpu, c.kernels.attention, o.sparse), precision::bf16);
      return;
    case layer_operator::type::indexer:
      b.kernel(part_kind::attention, o.name, indexer_forward_cost(c.machine.gpu, c.kernels.attention, o.index),
               precision::bf16);
      return;
    case layer_operator::type::scan:
      b.kernel(part_kind::attention, o.name, scan_cost(c, o, true), precision::bf16);
      return;
    case layer_operator::type::stream:
      b.bytes_moved(o.name, o.forward_bytes, o.part);
      return;
  }
}

bool has_inputs(pass_kind what) { return what != pass_kind::backward_weight; }
bool has_weights(pass_kind what) { return what != pass_kind::backward_input; }

void price_linear_backward(builder& b, const training_context& c, const layer_operator& o, pass_kind what) {
  const gemm_params& g = gemm_of(c, o.operands);
  if (has_inputs(what)) {
    if (o.cast_gradient) b.quantise(o, o.m * o.n, c.framework.quantise_bytes_backward);
    b.gemm(o, g, {.m = o.m, .n = o.k, .k = o.n, .groups = o.groups});
  }
  if (!has_weights(what) || (c.workload.frozen_layers() && !o.adapter)) return;  // frozen: no gradient
  // The weight gradient is added to an FP32 accumulator: one read and one write.
  b.gemm(o, g, {.m = o.n, .n = o.k, .k = o.m, .groups = o.groups, .output_element_bytes = 8});
}

void price_backward(builder& b, const training_context& c, const layer_operator& o, pass_kind what) {
  if (o.what == layer_operator::type::linear) return price_linear_backward(b, c, o, what);
  if (!has_inputs(what)) return;
  const gpu_spec& gpu = c.machine.gpu;
  switch (o.what) {
    case layer_operator::type::attention:
      b.attention(o.name, attention_cost(c, o.shape, false), o.shape);
      return;
    case layer_operator::type::sparse_attention:
      b.kernel(part_kind::attention, o.name, sparse_attention_backward_cost(gpu, c.kernels.attention, o.sparse),
               precision::bf16);
      return;
    case layer_operator::type::indexer:
      b.kernel(part_kind::attention, o.name, indexer_backward_cost(gpu, c.kernels.attention, o.index),
               precision::bf16);
      return;
    case layer_operator::type::scan:
      b.kernel(part_kind::attention, o.name, scan_cost(c, o, false), precision::bf16);
      return;
    case layer_operator::type::stream:
    case layer_operator::type::linear:
      b.bytes_moved(o.name, o.backward_bytes, o.part);
      return;
  }
}

/// Joins the normalised hidden state and the normalised embedding of the next token before a prediction module.
layer_operator predictor_input(const training_context& c) {
  layer_operator o;
  o.what = layer_operator::type::linear;
  o.name = "mtp.join";
  o.m = c.tokens.whole;
  o.n = static_cast<double>(c.net.hidden) / static_cast<double>(c.workload.par.tp);
  o.k = 2 * static_cast<double>(c.net.hidden);
  o.operands = c.workload.gemm_precision;
  return o;
}

priced_transfer launched(priced_transfer t, seconds launch) {
  t.time += launch;
  t.latency += launch;
  return t;
}

/// Blocks of a layer that tensor-parallel ranks share: attention, the MLP, shared experts, and routed ones only if
/// they are divided, too.
double divided_blocks(const training_workload& w, const layer_spec& l) {
  double blocks = l.attention == attention_kind::none ? 0 : 1;
  if (!l.routed()) return blocks + (l.ffn_hidden > 0 ? 1 : 0);
  if (w.par.etp > 1) blocks += 1;
  if (l.moe.shared_ffn > 0) blocks += 1;
  return blocks;
}

/// Exposed time of tensor-parallel collectives in one direction, before and after each divided block.
void tensor_parallel(builder& b, const training_context& c, const layer_spec& l) {
  if (c.workload.par.tp == 1) return;
  const communicator g = tensor_group(c.workload.par, c.workload.place);
  const bytes size =
      bytes::from_base(c.tokens.whole * static_cast<double>(c.net.hidden) * tensor_bytes(c.workload));
  const double blocks = divided_blocks(c.workload, l);
  const auto wait = [&](collective k, const char* name) {
    const priced_transfer t =
        launched(price_transfer(c.collectives, c.machine, k, size, g), c.framework.collective_launch);
    b.waiting(part_kind::tp, name, t.time * (c.framework.tp_exposed * blocks), facts_of(c.machine, t, blocks));
  };
  if (c.workload.par.sequence_parallel) {
    wait(collective::all_gather, "tp.all_gather");
    wait(collective::reduce_scatter, "tp.reduce_scatter");
  } else {
    wait(collective::all_reduce, "tp.all_reduce");
  }
}

/// Elements per token that each context-parallel rank needs from each other rank.
double shared_elements(const layer_spec& l, double tp) {
  switch (l.attention) {
    case attention_kind::mla:
      return static_cast<double>(l.mla.kv_lora_rank + l.mla.qk_rope_dim + l.index_dim);
    case attention_kind::compressed: {  // pooled keys only; window keys come from the neighbour
      const double ratio = static_cast<double>(l.compressed.ratio);
      return ratio > 0 ? static_cast<double>(l.head_dim + l.index_dim) / ratio : 0;
    }
    case attention_kind::grouped_query:
      break;
    case attention_kind::linear:
    case attention_kind::mamba:
    case attention_kind::none:
      return 0;
  }
  return static_cast<double>(l.kv_heads * (l.head_dim + value_dim(l)) + l.index_dim) / tp;
}

/// A scan needs the whole sequence: an all-to-all reshards its inputs from tokens to heads, another its output
/// back; `times` times.
void exchange_heads(builder& b, const training_context& c, const layer_spec& l, double times) {
  const scan_spec& s = l.scan;
  const double width = static_cast<double>(s.heads * s.head_dim);
  const double keys =
      2 * static_cast<double>((l.attention == attention_kind::mamba ? s.groups : s.key_heads) * s.state);
  const double per_token = tensor_bytes(c.workload) * (3 * width + keys + static_cast<double>(s.heads)) /
                           static_cast<double>(c.workload.par.tp);
  const priced_transfer t = launched(price_transfer(c.collectives, c.machine, collective::all_to_all,
                                                    bytes::from_base(per_token * c.tokens.whole),
                                                    context_group(c.workload.par, c.workload.place)),
                                     c.framework.collective_launch * 2);
  b.waiting(part_kind::cp, "cp.all_to_all", t.time * times, facts_of(c.machine, t));
}

/// All-to-all reshards queries, keys and values from tokens to heads, and the output back; `times` times.
void exchange_attention(builder& b, const training_context& c, const layer_spec& l, double times) {
  const double tp = static_cast<double>(c.workload.par.tp), cp = static_cast<double>(c.workload.par.cp);
  const double kv_heads = std::max(static_cast<double>(l.kv_heads) / tp, cp);  // at least one per rank
  const double width =
      static_cast<double>(l.head_dim + value_dim(l)) * (static_cast<double>(l.heads) / tp + kv_heads);
  const priced_transfer t =
      launched(price_transfer(c.collectives, c.machine, collective::all_to_all,
                              bytes::from_base(tensor_bytes(c.workload) * width * c.tokens.whole),
                              context_group(c.workload.par, c.workload.place)),
               c.framework.collective_launch * 2);
  b.waiting(part_kind::cp, "cp.all_to_all", t.time * times, facts_of(c.machine, t, times));
}

/// Exchange between the shards of a sequence: all-to-all for scans, all-to-all or a ring of keys and values for
/// attention. Recomputed operators repeat their exchange.
void context_parallel(builder& b, const training_context& c, const layer_spec& l, bool is_forward) {
  if (c.workload.par.cp == 1 || l.attention == attention_kind::none) return;
  const recompute_spec& r = c.workload.recompute;
  const bool scan = l.attention == attention_kind::mamba || l.attention == attention_kind::linear;
  const double again = !is_forward && (r.full || (r.core_attention && !scan)) ? 1 : 0;
  if (scan) return exchange_heads(b, c, l, 1 + again);
  if (c.workload.cp_exchange == context_exchange::all_to_all) return exchange_attention(b, c, l, 1 + again);
  const double passes = is_forward ? 1 : 2 + again;  // backward: keys and values again, and their gradients
  const communicator all = context_group(c.workload.par, c.workload.place);
  const double width = tensor_bytes(c.workload) * shared_elements(l, static_cast<double>(c.workload.par.tp));
  const priced_transfer hop = launched(
      price_transfer(c.collectives, c.machine, collective::send_recv, bytes::from_base(width * c.tokens.whole),
                     {.ranks = 2, .domains = all.domains > 1 ? 2 : 1, .stride = c.workload.par.tp}),
      c.framework.collective_launch);
  const double hops = static_cast<double>(c.workload.par.cp - 1) * passes;
  b.waiting(part_kind::cp, "cp.exchange", hop.time * (hops * c.framework.cp_exposed),
            facts_of(c.machine, hop, hops));
}

/// Copies of a token that leave a rank, and those that one receives through its NIC: one for each rank and domain
/// with any of its experts if the dispatcher sends them once, else one for each expert. Of the domain with the
/// fewest ranks of the group.
struct token_copies {
  double sent = 0, received = 0;
};
token_copies copies_of(const training_context& c, const layer_spec& l, const communicator& g) {
  const double n = static_cast<double>(c.workload.par.ep), m = g.min_members(),
               k = static_cast<double>(l.moe.top_k);
  const capacity_load load = load_of_experts(l, c.workload);
  if (!sends_once(c.workload.dispatcher)) {
    const double kept = k * (c.workload.static_experts() ? load.rows : load.kept);
    return {kept * (n - 1) / n, kept * (n - m) / n};
  }
  const expert_choice choice = choice_of(c.workload, c.framework);
  return {(n - 1) * reach_of(l.moe, choice, 1 / n, load.kept),
          (n - m) / m * reach_of(l.moe, choice, m / n, load.kept)};
}

/// Whether the backward pass recomputes an expert layer from the router to the combined output.
bool repeats_experts(const training_context& c) { return c.workload.recompute.full || c.workload.recompute.moe; }

/// Dispatch and combine of routed tokens. [docs/models-and-assumptions.md#experts]
void expert_parallel(builder& b, const training_context& c, const layer_spec& l, bool is_forward, bool paired) {
  const parallelism& par = c.workload.par;
  if (!l.routed() || par.ep == 1) return;
  const communicator g = expert_group(par, c.workload.place);
  const bool dedup = sends_once(c.workload.dispatcher);
  const double token_bytes =
      c.tokens.moe / static_cast<double>(par.etp) * expert_width(static_cast<double>(c.net.hidden), l) *
      tensor_bytes(c.workload) *
      (c.workload.static_experts() && !dedup ? 1
                                             : expert_imbalance(l, c.workload));  // arriving at the busiest rank
  const token_copies copies = copies_of(c, l, g);
  const bytes on_nvlink = bytes::from_base(token_bytes * copies.sent);
  const bytes on_nic = g.domains > 1 ? bytes::from_base(token_bytes * copies.received) : bytes{};
  const seconds nvlink = on_nvlink / (c.machine.gpu.nvlink * c.framework.ep_nvlink_share);
  // Deduplicated tokens leave on the rail on which they arrive.
  const network::fabric_path path = path_of(c.machine, dedup ? collective::all_gather : collective::all_to_all, g);
  const seconds nic = on_nic / (path.nic * c.framework.ep_nic_share);
  const double there = dispatched_share(c.workload), there_and_back = there + 1;
  const seconds both = std::max(nvlink, nic) * (there + c.framework.ep_combine_ratio) + c.framework.ep_launch * 2;
  const port_bytes inside{on_nvlink * there_and_back, on_nvlink * there_and_back},
      outside{on_nic * there_and_back, on_nic * there_and_back};
  const priced_transfer t{both,
                          c.framework.ep_launch * 2,
                          along({inside, outside}, path),
                          bytes::from_base(token_bytes),
                          g,
                          "expert_exchange",
                          {}};
  part_facts f = facts_of(c.machine, t);
  f.limit = nic > nvlink ? resource::nic : resource::nvlink;
  f.ceiling = (nic > nvlink ? c.machine.fabric.nic_bandwidth : c.machine.gpu.nvlink).base();
  f.moved = (nic > nvlink ? on_nic : on_nvlink) * there_and_back;
  b.waiting(
      part_kind::ep, "ep.exchange",
      both * ((paired || c.workload.moe_overlap ? c.framework.ep_exposed_overlapped : c.framework.ep_exposed) *
              (!is_forward && repeats_experts(c) ? 2 : 1)),
      f);
}

/// Whether there is an exchange that the overlap's schedule can hide.
bool overlaps_exchange(const training_context& c) {
  return c.workload.moe_overlap && c.workload.par.ep > 1 && has_routed_experts(c.net);
}

void host(builder& b, const char* name, seconds t) {
  b.waiting(part_kind::host, name, t, facts_of_wait(resource::host, t));
}

/// Times of the host and of the GPU before and after the host waits for the GPU to count the tokens of experts.
struct host_pace {
  seconds host_before, host_after, gpu_before, gpu_after;
};

bool graph_holds(const graph_scope& g, const layer_spec& l, layer_part part) {
  switch (part) {
    case layer_part::mixer:
      return l.scan.heads > 0 ? g.scans : g.attention;
    case layer_part::router:
      return g.router;
    case layer_part::mlp:
      return g.mlp && !l.routed();
    case layer_part::experts:
      return false;
  }
  return false;
}

/// Nodes of a layer in the schedule that overlaps the exchange: attention and MLP, and around experts dispatch and
/// combination. [docs/models-and-assumptions.md#host]
double schedule_nodes(const layer_spec& l) { return l.routed() ? 4 : 2; }

/// Launches of one pass through a layer: one for each operator and each gradient of weights, and those of experts.
/// CUDA graphs hold the operators in their scope and cost one launch. [docs/models-and-assumptions.md#host]
host_pace launches(const training_context& c, const layer_spec& l, const std::vector<layer_operator>& operators,
                   bool is_forward) {
  const training_workload& w = c.workload;
  const bool trains_weights = !w.frozen_layers();
  double before = 0, after = 0, graphed = 0;
  for (const layer_operator& o : operators) {
    double n =
        is_forward ? o.launches : o.backward_launches.value_or(o.launches) + (o.recomputed ? o.launches : 0);
    if (!is_forward && o.what == layer_operator::type::linear && (trains_weights || o.adapter))
      n += o.adapter ? o.launches : 1;
    const bool in_graph = w.graphs == cuda_graphs::partial && graph_holds(w.graphed, l, o.part);
    (in_graph ? graphed : o.part == layer_part::experts || o.part == layer_part::mlp ? after : before) += n;
  }
  if (graphed > 0) before += 1;
  host_pace p;
  p.host_before = c.framework.host_per_operator * before;
  p.host_after = c.framework.host_per_operator * after;
  if (overlaps_exchange(c) && w.graphs == cuda_graphs::none && quantised(w.gemm_precision))
    p.host_after += c.framework.moe_host_per_node * schedule_nodes(l);
  if (l.routed() && !w.static_experts()) {
    const double local = static_cast<double>(l.moe.experts) / static_cast<double>(w.par.ep);
    seconds expert = c.framework.moe_host_per_expert;
    if (quantised(w.gemm_precision)) expert += c.framework.moe_host_per_cast_expert;
    const double passes = is_forward ? 1.0 : 1.5 + (repeats_experts(c) ? 1.0 : 0.0);
    p.host_after += expert * (local * passes);
    if (l.moe.shared_ffn > 0) p.host_after += c.framework.moe_host_of_shared_experts * passes;
  }
  return p;
}

/// What the GPU waits for the host. Without experts the host runs ahead until it has launched the whole pass. A
/// routed layer's host waits for the counts of tokens in the forward pass, and the GPU then for the launches that
/// follow; under the exchange's overlap it has another micro-batch to compute meanwhile.
void host_wait(builder& b, const training_context& c, const layer_spec& l, const host_pace& p, bool is_forward) {
  if (c.workload.graphs == cuda_graphs::full_iteration) return;
  const seconds all = p.gpu_before + p.gpu_after;
  seconds paced = std::max(all, p.host_before + p.host_after);
  if (l.routed() && is_forward && !c.workload.static_experts() && !overlaps_exchange(c))
    paced = std::max(paced, p.host_after + p.gpu_before);
  if (paced > all) host(b, "launches", paced - all);
}

/// Activations of offloaded layers and modules cross C2C while the layer computes; only the excess is exposed.
void offload(builder& b, const training_context& c, const layer_spec& l, seconds hidden_behind) {
  if (c.workload.offload_layers == 0 && !c.workload.offload.any()) return;
  const double layers = std::min(1.0, static_cast<double>(c.workload.offload_layers * c.workload.par.pp) /
                                          static_cast<double>(c.net.layers.size()));
  const stored_bytes stored = stored_activations(c.net, l, c.workload, c.framework);
  const double share = c.workload.offload.any() ? 1 : layers;  // of the passes through layers
  const seconds transfer = (stored.away + stored.here * (layers / share)) / c.machine.gpu.c2c;
  part_facts f = facts_of_wait(resource::c2c, transfer);
  f.moved = transfer * c.machine.gpu.c2c;
  f.ceiling = c.machine.gpu.c2c.base();
  b.waiting(part_kind::memory_bound, "offload", std::max(seconds{}, transfer - hidden_behind) * share, f);
}

/// FSDP gathers a layer's parameters for each pass; only what the layer does not hide is exposed.
void fsdp_gather(builder& b, const training_context& c, local_parameters local, seconds compute, pass_kind what) {
  if (c.workload.sharding != data_parallel_sharding::fsdp) return;
  priced_transfer traffic = has_inputs(what) ? parameter_gather(c, local) : priced_transfer{};
  if (what != pass_kind::forward && has_weights(what) && !c.workload.frozen_layers())
    traffic = traffic + gradient_reduction(c, local);
  const seconds hidden = std::min(traffic.time, compute);
  b.waiting(part_kind::dp, "fsdp", traffic.time - hidden + hidden * c.framework.dp_interference,
            facts_of(c.machine, traffic));
}

double slowdown_of(const training_profile& framework, const training_workload& w) {
  const double doublings = std::log2(std::max(1.0, static_cast<double>(w.par.gpus()) / 8));
  return framework.time_factor * (1 + framework.jitter_per_doubling * doublings);
}

void append(costed_parts& to, costed_parts from) {
  to.parts.insert(to.parts.end(), std::make_move_iterator(from.parts.begin()),
                  std::make_move_iterator(from.parts.end()));
  to.energy += from.energy;
}

}  // namespace

std::vector<std::string> format_problems(const platform& p, const stack& s, const training_workload& w) {
  std::vector<std::string> out;
  const kernel_profile kernels = kernels_for(s, p.gpu);
  std::set<precision> formats = {w.gemm_precision};
  for (const auto& kept : {w.kept.attention, w.kept.scan_output, w.kept.latent})
    if (kept && w.gemm_precision != precision::bf16) formats.insert(*kept);
  for (const precision x : formats)
    if (kernels.gemm.find(rate_format(x)) == kernels.gemm.end()) out.push_back(no_rate_of(kernels, x));
  return out;
}

seconds costed_parts::duration() const {
  seconds t;
  for (const operation_part& p : parts) t += p.duration * p.repeat;
  return t;
}

void costed_parts::append(const costed_parts& other, std::int64_t times) {
  if (times == 0) return;
  for (operation_part p : other.parts) {
    p.repeat *= static_cast<int>(times);
    parts.push_back(std::move(p));
  }
  energy += other.energy * static_cast<double>(times);
}

training_context::training_context(const platform& p, const stack& s, const model& m, const training_workload& w)
    : machine(p), profile(std::make_shared<const kernel_profile>(kernels_for(s, p.gpu))), kernels(*profile),
      framework(*s.training), collectives(s.collectives), net(m), workload(w), tokens(tokens_of(w)),
      slowdown(slowdown_of(framework, w)) {}

training_context::training_context(const platform& p, const stack& s, const model& m, const training_workload& w,
                                   pass_cache& shared)
    : machine(p), profile(shared.kernels(s, p.gpu)), kernels(*profile), framework(*s.training),
      collectives(s.collectives), net(m), workload(w), tokens(tokens_of(w)), slowdown(slowdown_of(framework, w)),
      passes(&shared) {}

training_context::training_context(const training_context& like, const training_workload& w)
    : machine(like.machine), profile(like.profile), kernels(*profile), framework(like.framework),
      collectives(like.collectives), net(like.net), workload(w), tokens(tokens_of(w)),
      slowdown(slowdown_of(framework, w)), passes(like.passes) {}

training_context::training_context(const training_context& like, const model& m, const training_workload& w)
    : machine(like.machine), profile(like.profile), kernels(*profile), framework(like.framework),
      collectives(like.collectives), net(m), workload(w), tokens(tokens_of(w)), slowdown(like.slowdown),
      passes(like.passes) {}

namespace {

costed_parts layer_forward(const training_context& c, const layer_spec& l, bool paired) {
  builder kernels(c, c.slowdown);
  const auto operators = layer_operators(c.net, l, c.workload, c.framework);
  host_pace gpu;
  for (const layer_operator& o : operators) {
    if (o.part == layer_part::experts && gpu.gpu_before == seconds{}) gpu.gpu_before = kernels.duration();
    price_forward(kernels, c, o);
  }
  costed_parts out = kernels.take();
  const seconds compute = out.duration();
  builder b(c, 1);
  tensor_parallel(b, c, l);
  context_parallel(b, c, l, true);
  expert_parallel(b, c, l, true, paired);
  offload(b, c, l, compute);
  fsdp_gather(b, c, parameters_on_gpu(c.net, l, c.workload.par), compute, pass_kind::forward);
  gpu.gpu_after = compute - gpu.gpu_before + b.duration();
  host_pace pace = launches(c, l, operators, true);
  pace.gpu_before = gpu.gpu_before;
  pace.gpu_after = gpu.gpu_after;
  host_wait(b, c, l, pace, true);
  append(out, b.take());
  return out;
}

costed_parts layer_backward(const training_context& c, const layer_spec& l, pass_kind what, bool paired) {
  const auto operators = layer_operators(c.net, l, c.workload, c.framework);
  builder kernels(c, c.slowdown);
  for (const layer_operator& o : operators)
    if (o.recomputed && has_inputs(what)) price_forward(kernels, c, o);
  for (auto o = operators.rbegin(); o != operators.rend(); ++o) price_backward(kernels, c, *o, what);
  costed_parts out = kernels.take();
  const seconds compute = out.duration();
  builder b(c, 1);
  if (has_inputs(what)) {
    tensor_parallel(b, c, l);
    if (c.workload.recompute.full) tensor_parallel(b, c, l);
    context_parallel(b, c, l, false);
    expert_parallel(b, c, l, false, paired);
    offload(b, c, l, compute);
  }
  fsdp_gather(b, c, parameters_on_gpu(c.net, l, c.workload.par), compute, what);
  if (has_inputs(what)) {
    host_pace pace = launches(c, l, operators, false);
    pace.gpu_after = compute + b.duration();
    host_wait(b, c, l, pace, false);
  }
  append(out, b.take());
  return out;
}

/// Vocabulary tables are FSDP units, like layers.
void append_vocabulary_gather(costed_parts& out, const training_context& c, pass_kind what) {
  builder b(c, 1);
  fsdp_gather(b, c, {.dense = local_vocabulary_parameters(c), .expert = 0}, out.duration(), what);
  append(out, b.take());
}

seconds host_time(const costed_parts& pass) {
  seconds t;
  for (const operation_part& p : pass.parts)
    if (p.kind == part_kind::host) t += p.duration * p.repeat;
  return t;
}

/// How far the host runs ahead of the GPU in a pass through the layers of a stage, which hides waits for its
/// launches elsewhere. It cannot where it waits for the counts of experts.
seconds host_lead(const training_context& c, pass_kind what) {
  const layer_spec& l = c.net.layers.front();
  if (l.routed() && !c.workload.static_experts()) return {};
  const costed_parts pass = layer_pass(c, l, what);
  const host_pace pace =
      launches(c, l, layer_operators(c.net, l, c.workload, c.framework), what == pass_kind::forward);
  const seconds lead = pass.duration() - host_time(pass) - pace.host_before - pace.host_after;
  return std::max(seconds{}, lead) * (static_cast<double>(c.net.layers.size()) / c.workload.par.pp);
}

/// The encoder of images, each of whose layers is a layer as any other, and its projector.
void append_encoder(costed_parts& out, const training_context& c, pass_kind what) {
  const auto e = image_encoder_of(c.net, c.workload);
  if (!e || (what != pass_kind::forward && !trains_towers(c.workload))) return;
  const training_context own(c, e->net, e->work);
  costed_parts layer = layer_pass(own, e->net.layers.front(), what);
  const auto layers = static_cast<double>(e->net.layers.size());
  const seconds waits = host_time(layer) * layers;
  const double left = waits > seconds{} ? std::max(seconds{}, waits - host_lead(c, what)) / waits : 0;
  layer.energy -= c.machine.gpu.idle_power * (waits * ((1 - left) / layers));
  for (operation_part& p : layer.parts) {
    p.name = "vision_tower";
    if (p.kind == part_kind::host) p.duration *= left;
  }
  out.append(layer, static_cast<std::int64_t>(layers));
  builder b(own, own.slowdown);
  layer_operator projector;
  projector.what = layer_operator::type::linear;
  projector.name = "vision_projector";
  projector.m = e->tokens, projector.n = e->projector / e->joint, projector.k = e->joint;
  projector.operands = e->work.gemm_precision;
  if (what == pass_kind::forward) price_forward(b, own, projector);
  else price_backward(b, own, projector, what);
  append(out, b.take());
}

}  // namespace

costed_parts layer_pass(const training_context& c, const layer_spec& l, pass_kind what, bool paired) {
  return what == pass_kind::forward ? layer_forward(c, l, paired) : layer_backward(c, l, what, paired);
}

costed_parts embedding_pass(const training_context& c, pass_kind what) {
  builder b(c, c.slowdown);
  const double elements = c.tokens.whole * static_cast<double>(c.net.hidden) * tensor_bytes(c.workload) / 2;
  const bool gradient = what != pass_kind::forward && has_weights(what) && !c.workload.frozen_layers();
  if (what == pass_kind::forward) b.bytes_moved("embedding", elements * compute::elementwise_bytes("embedding"));
  else if (gradient) b.bytes_moved("embedding", elements * compute::elementwise_bytes("embedding_backward"));
  costed_parts out = b.take();
  if (what == pass_kind::forward || gradient)
    append_vocabulary_gather(out, c, what == pass_kind::forward ? what : pass_kind::backward_weight);
  append_encoder(out, c, what);
  return out;
}

costed_parts head_pass(const training_context& c, pass_kind what) {
  builder b(c, c.slowdown);
  const double v = static_cast<double>(c.net.vocab) / static_cast<double>(c.workload.par.tp);
  layer_operator head;
  head.what = layer_operator::type::linear;
  head.name = "lm_head";
  head.m = c.tokens.whole, head.n = v, head.k = static_cast<double>(c.net.hidden);
  if (tensor_bytes(c.workload) > 2) head.operands = c.workload.gemm_precision;
  const double losses = c.tokens.whole * v * tensor_bytes(c.workload) * 3;
  if (what == pass_kind::forward) price_forward(b, c, head);
  if (has_inputs(what)) b.bytes_moved("cross_entropy", losses);
  if (what != pass_kind::forward) price_backward(b, c, head, what);
  costed_parts out;
  out.append(b.take(), 1 + c.net.mtp_layers);
  if (what == pass_kind::forward) price_forward(b, c, predictor_input(c));
  else price_backward(b, c, predictor_input(c), what);
  out.append(b.take(), c.net.mtp_layers);
  append_vocabulary_gather(out, c, what);
  return out;
}

std::int64_t deferred_head_gradients(const training_context& c) {
  const training_workload& w = c.workload;
  if (w.par.pp == 1 || splits_backward(w.schedule) || w.frozen_layers() ||
      w.sharding == data_parallel_sharding::fsdp || w.sharding == data_parallel_sharding::optim_grads)
    return 0;
  if (has_routed_experts(c.net)) return 0;
  return std::min(c.framework.wgrad_deferral_limit.read(), w.micro_batches());
}

costed_parts optimizer_step(const training_context& c, double local, double updated) {
  builder b(c, c.slowdown);
  const double requantised =
      quantised(c.workload.gemm_precision) ? local * 4 : 0.0;  // reads BF16, writes 8 bits twice
  const kernel_cost k = stream_cost(c.machine.gpu, c.kernels.stream,
                                    bytes::from_base(updated * c.framework.optimizer_bytes + requantised));
  b.kernel(part_kind::optimizer, "optimizer", k, precision::bf16);
  return b.take();
}

// X is m x n, m no larger: A = X X^T, B = b A + c A^2, X = a X + B X. [docs/models-and-assumptions.md#muon]
costed_parts orthogonalisation(const training_context& c, const layer_spec& l) {
  constexpr double iterations = 5;
  builder b(c, c.slowdown);
  const training_workload& w = c.workload;
  const bool whole = w.sharding == data_parallel_sharding::replicated;
  const double ranks = whole ? 1 : gradient_group(w).ranks,
               expert_ranks = whole ? 1 : expert_gradient_group(w).ranks;
  for (const weight_matrix& of : layer_matrices(l, c.net.hidden)) {
    const bool expert = of.part == matrix_part::experts;
    rank_matrix r = on_rank(of, static_cast<double>(w.par.tp));
    if (expert) {
      r.groups /= static_cast<double>(w.par.ep);
      (of.by == divided::inputs ? r.in : r.out) /= static_cast<double>(w.par.etp);
    }
    const double m = std::min(r.in, r.out), n = std::max(r.in, r.out);
    for (const gemm_shape& s :
         {gemm_shape{m, m, n, r.groups}, gemm_shape{m, m, m, r.groups}, gemm_shape{m, n, m, r.groups}}) {
      kernel_cost k = gemm_cost(c.machine.gpu, gemm_of(c, precision::bf16), precision::bf16, s);
      const double times = iterations / (expert ? expert_ranks : ranks);
      k.time *= times, k.flop = k.flop * times, k.moved = k.moved * times, k.launch *= times;
      b.kernel(part_kind::optimizer, "orthogonalise", k, precision::bf16);
    }
  }
  return b.take();
}

double local_predictor_parameters(const training_context& c) {
  const double h = static_cast<double>(c.net.hidden);
  return static_cast<double>(c.net.mtp_layers) * (2 * h + 3) * h / static_cast<double>(c.workload.par.tp);
}

double local_vocabulary_parameters(const training_context& c) {
  return static_cast<double>(c.net.vocab * c.net.hidden) / static_cast<double>(c.workload.par.tp);
}

}  // namespace nvlsim
