// Checks of training layouts, and their memory. [docs/models-and-assumptions.md#memory]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "nvlsim/training/training.hpp"
#include "nvlsim/units/units_text.hpp"
#include "training/pass_costs.hpp"

namespace nvlsim {
namespace {

/// Contents of one pipeline stage.
struct stage_content {
  local_parameters parameters;  ///< layers and vocabulary tables
  double vocabulary = 0;        ///< vocabulary tables among them
  double last_layer =
      0;  ///< dense parameters of a chunk's last layer, whose backward runs first; the largest of several chunks
  double gathered = 0;             ///< parameters of the largest layer that FSDP shards, experts included
  double vectors = 0;              ///< parameters that are no matrices of layers: vocabulary tables
  double towers = 0;               ///< of encoders in front of the first layer
  double adapters = 0;             ///< of LoRA with a stated rank
  std::vector<bytes> activations;  ///< per micro-batch, by local chunk
  std::vector<bytes> away;         ///< the same in CPU memory, by modules
  bytes transit;                   ///< of them, those of the largest layer, which is on the GPU while it computes
  bytes again;                     ///< activations of a recomputed unit of layers, beyond its input
  std::int64_t layers = 0;
  bool head = false;  ///< computes the loss
};

/// Adds up what the layers of a chunk keep: all activations, or the input of each recomputed unit.
class chunk_activations {
 public:
  explicit chunk_activations(const training_context& c) : c_(c), all_kept_(c.workload) {
    all_kept_.recompute = {};
  }

  void add(const layer_spec& l, std::int64_t index, bool predicts) {
    const recompute_spec& r = c_.workload.recompute;
    const stored_bytes kept = stored_activations(c_.net, l, c_.workload, c_.framework);
    const bytes input = kept.here;  // only the layer's input under full recompute
    if (!r.full) {
      stored_ += input;
      away_ += kept.away;
      transit_ = std::max(transit_, kept.away);
      return;
    }
    const stored_bytes whole = stored_activations(c_.net, l, all_kept_, c_.framework);
    const bytes all = whole.here + whole.away;
    if (!recomputes_layer(r, index, predicts)) {
      stored_ += all;
      whole_ = true;
    } else {
      const bool begins = r.block || index % r.num_layers == 0;
      unit_ = begins ? all - input : unit_ + all;
      if (begins) stored_ += input;
      largest_ = std::max(largest_, unit_);
    }
  }
  bytes stored() const { return stored_; }
  bytes away() const { return away_; }
  bytes transit() const { return transit_; }
  /// Activations of the largest recomputed unit beyond its input. Layers that keep everything run first in the
  /// backward pass and have released their memory by then.
  bytes again() const { return whole_ ? bytes{} : largest_; }

 private:
  const training_context& c_;
  training_workload all_kept_;
  bytes stored_, away_, transit_, unit_, largest_;
  bool whole_ = false;  ///< some layer keeps everything
};

/// Parameters of the adapters of a layer on one GPU: two narrow matrices on each named projection.
double adapter_parameters(const model& m, const layer_spec& l, const training_workload& w) {
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const double h = real(m.hidden), q = real(l.heads * l.head_dim), width = l.gated_mlp ? 2 : 1;
  const double f = real(l.routed() ? l.moe.expert_ffn : l.ffn_hidden);
  const double each = real(w.lora.rank) / real(w.par.tp);
  double sizes = 0;
  if (l.heads > 0) {
    if (w.lora.qkv) sizes += h + q + real(projected_kv(l));
    if (w.lora.proj) sizes += h + q;
  }
  const double copies = l.routed() ? real(l.moe.experts) / real(w.par.ep) : 1;
  if (f > 0) {
    if (w.lora.fc1) sizes += copies * (h + width * f);
    if (w.lora.fc2) sizes += copies * (h + f);
  }
  return each * sizes;
}

/// `gathered` counts only parameters whose sharding group has more than one rank.
stage_content content_of(const training_context& c, std::int64_t stage, bool shared_dense, bool shared_experts) {
  const training_workload& w = c.workload;
  const pipeline_geometry shape = geometry_of(w);
  const auto counts = chunk_layers(c.net, w);
  stage_content s;
  s.activations.resize(static_cast<std::size_t>(shape.local));
  s.away.resize(s.activations.size());
  int tables = 0;
  for (std::int64_t v = 0; v < shape.local; ++v) {
    const std::int64_t chunk = shape.chunk_of(stage, v);
    const bool first = chunk == 0, last = chunk == shape.chunks() - 1;
    tables += c.net.tied_embeddings && first && last ? 1 : (first ? 1 : 0) + (last ? 1 : 0);
    s.head |= last;
    if (first) s.vectors += static_cast<double>(c.net.lookup_tables) / static_cast<double>(w.par.tp);
    if (first) s.towers = static_cast<double>(tower_parameters(c.net));
    if (last) s.parameters.dense += local_predictor_parameters(c);
    const auto here = counts.begin() + static_cast<std::ptrdiff_t>(chunk);
    const std::int64_t begin = std::accumulate(counts.begin(), here, std::int64_t{0});
    chunk_activations kept(c);
    double last_layer = 0;
    for (std::int64_t i = begin; i < begin + *here; ++i) {
      const auto at = static_cast<std::size_t>(i), decoder = c.net.layers.size();
      const layer_spec& l =
          at < decoder ? c.net.layers[at] : c.net.mtp_block[(at - decoder) % c.net.mtp_block.size()];
      const local_parameters p = parameters_on_gpu(c.net, l, w.par);
      s.parameters.dense += p.dense;
      s.parameters.expert += p.expert;
      last_layer = p.dense;
      s.gathered = std::max(s.gathered, (shared_dense ? p.dense : 0) + (shared_experts ? p.expert : 0));
      kept.add(l, i - begin, at >= decoder);
      s.adapters += adapter_parameters(c.net, l, w);
      ++s.layers;
    }
    s.activations[static_cast<std::size_t>(v)] = kept.stored();
    s.away[static_cast<std::size_t>(v)] = kept.away();
    s.transit = std::max(s.transit, kept.transit());
    s.again = std::max(s.again, kept.again());
    s.last_layer = last ? last_layer : std::max(s.last_layer, last_layer);
  }
  if (c.net.tied_embeddings) tables = std::min(tables, 1);
  s.vocabulary = s.vectors += local_vocabulary_parameters(c) * tables;
  s.parameters.dense += s.vocabulary;
  return s;
}

/// Largest sum of activations over the schedule, and the number of chunk passes that hold them. Inputs of a weight
/// gradient are kept until it is computed.
struct held_activations {
  bytes peak, away;
  std::int64_t chunks = 0;
};
held_activations peak_activations(const training_workload& w, const stage_content& s, std::int64_t stage) {
  std::vector<std::int64_t> alive(s.activations.size(), 0);
  held_activations out;
  pipeline_geometry shape = geometry_of(w);
  // The order repeats every PP micro-batches; four repetitions include the peak.
  shape.micro_batches = std::min(shape.micro_batches, 4 * shape.pp);
  for (const pipeline_slot& slot : stage_schedule(shape, stage)) {
    if (slot.what == pass_kind::backward_input) continue;
    alive[static_cast<std::size_t>(slot.chunk)] += slot.what == pass_kind::forward ? 1 : -1;
    if (slot.what != pass_kind::forward) continue;
    bytes now, away;
    for (std::size_t v = 0; v < alive.size(); ++v) {
      now += s.activations[v] * static_cast<double>(alive[v]);
      away += s.away[v] * static_cast<double>(alive[v]);
    }
    if (now + away >= out.peak + out.away)
      out = {now, away, std::accumulate(alive.begin(), alive.end(), std::int64_t{0})};
  }
  return out;
}

/// Bytes of a weight of a linear layer. Frozen weights have no master copy, so recipes with formats of 8 bits or
/// fewer store them in 8 bits only. Otherwise weights are BF16, with quantised copies for the products with rows
/// and with columns that are kept from one micro-batch to the next; or only in 8 bits. Per-tensor FP8 needs no
/// second copy where the tensor cores take operands in any order (Blackwell).
double weight_bytes_of(const training_context& c) {
  const training_workload& w = c.workload;
  const double element = bytes_per_element(w.gemm_precision);
  if (element >= 2) return 2;
  if (w.task == training_task::lora) return std::max(1.0, element);
  // Megatron-Bridge's recipes of per-tensor FP8 and MXFP8 set fp8_param_gather, the others do not.
  const bool per_tensor = w.gemm_precision == precision::fp8;
  const bool only = w.fp8_params.value_or(per_tensor || w.gemm_precision == precision::mxfp8);
  const double copies = (per_tensor && c.machine.gpu.architecture != "hopper" ? 1 : 2) * element;
  return (only ? 0 : 2) + (only || w.micro_batches() > 1 ? copies : 0);
}

/// Communicators of more than one rank that a training rank is in: all ranks, and those of each dimension.
std::int64_t communicators_of(const model& m, const training_workload& w) {
  const parallelism& p = w.par;
  std::vector<std::int64_t> sizes = {p.gpus(), p.tp, p.pp, p.cp, p.dp * p.cp, p.tp * p.pp};
  if (has_routed_experts(m)) {
    sizes.push_back(p.ep);
    sizes.push_back(p.tp * p.cp * p.dp / std::max<std::int64_t>(1, p.ep * p.etp));
  }
  return std::count_if(sizes.begin(), sizes.end(), [](std::int64_t n) { return n > 1; });
}

/// Adds up the items of a stage.
struct memory_adder {
  memory_report& r;

  void operator()(const char* name, double size, std::string why) {
    if (size > 0) r.items.push_back({name, bytes::from_base(size), std::move(why)});
    r.peak += bytes::from_base(size);
  }
};

/// Weights, gradients and the optimizer's state.
void add_model_states(memory_adder& add, const training_context& c, const stage_content& here) {
  const training_workload& w = c.workload;
  const bool fsdp = w.sharding == data_parallel_sharding::fsdp,
             replicated = w.sharding == data_parallel_sharding::replicated;
  const double dense_group = gradient_group(w).ranks, expert_group = expert_gradient_group(w).ranks;
  const bool frozen = w.task == training_task::lora, stated = frozen && w.lora.rank > 0;
  /// Parameters on one GPU, sharded or not.
  const auto held = [&](bool sharded) {
    return sharded ? here.parameters.dense / dense_group + here.parameters.expert / expert_group
                   : here.parameters.total();
  };
  const bool shared_gradients = fsdp || w.sharding == data_parallel_sharding::optim_grads;
  const double params = held(fsdp), tables = here.vocabulary / (fsdp ? dense_group : 1), layers = params - tables;
  const char* sharded = fsdp ? ", sharded" : "";
  const double weight = weight_bytes_of(c);
  if (weight != 2)
    add("weights", weight * layers + 2 * tables,
        fmt::format("{:g} B x {:.3f} G{} parameters per GPU{}{}", weight, layers / 1e9, frozen ? " frozen" : "",
                    tables > 0 ? fmt::format(", 2 B x {:.3f} G vocabulary parameters", tables / 1e9) : "",
                    sharded));
  else
    add("weights", 2 * params, fmt::format("2 B (BF16) x {:.3f} G parameters per GPU{}", params / 1e9, sharded));
  if (here.towers > 0)
    add("towers", 2 * here.towers, fmt::format("2 B x {:.3f} G parameters of encoders", here.towers / 1e9));
  const double towers = frozen || w.freeze_towers ? 0 : here.towers;
  const auto trained = [&](bool is_sharded) {
    const double group = is_sharded ? dense_group : 1;
    if (stated) return here.adapters / group;
    return held(is_sharded) * (frozen ? lora_share : 1.0) + towers / group;
  };
  const double gradient = gradient_bytes(c.framework, w), reduced = trained(shared_gradients);
  add("gradients", gradient * reduced,
      fmt::format("{:g} B x {:.3f} G trained parameters{}", gradient, reduced / 1e9,
                  shared_gradients ? ", sharded" : ""));
  const optimizer_spec& o = w.optimizer;
  const double updated = trained(!replicated), both = o.master + o.first_moment + o.second_moment;
  const bool muon = o.kind == optimizer_kind::muon && !frozen;
  const double others = muon ? std::min(updated, here.vocabulary / (replicated ? 1 : dense_group)) : 0;
  const double each = muon ? o.master + o.first_moment : both;
  add("optimizer", each * (updated - others) + both * others,
      muon ? fmt::format(
                 "{:g} B (master copy and momentum) x {:.3f} G parameters of matrices, {:g} B x {:.3f} G others",
                 each, (updated - others) / 1e9, both, others / 1e9)
           : fmt::format("{:g} B ({} master copy and two moments{}) x {:.3f} G parameters updated by this GPU",
                         each, o.master < 4 ? "16-bit" : "FP32",
                         o.first_moment + o.second_moment < 8
                             ? fmt::format(" of {:g} B together", o.first_moment + o.second_moment)
                             : "",
                         updated / 1e9));
}

/// Activations in flight, less what is in CPU memory.
void add_activations(memory_adder& add, const training_context& c, const stage_content& here, std::int64_t stage) {
  const training_workload& w = c.workload;
  const held_activations alive = peak_activations(w, here, stage);
  bytes each;
  for (const bytes b : here.activations) each += b;
  // One offloaded layer of one micro-batch is being processed and is on the GPU.
  const double layers_here = static_cast<double>(std::max<std::int64_t>(here.layers, 1));
  const double away = std::clamp(static_cast<double>(w.offload_layers), 0.0, layers_here);
  const bytes by_layer =
      away > 0 ? std::max(bytes{}, alive.peak * (away / layers_here) - each * (1 / layers_here)) : bytes{};
  const bytes by_module = std::max(bytes{}, alive.away - here.transit);
  add.r.offloaded = by_layer + by_module;
  add.r.offload_room = cpu_room(c.machine);
  add("activations", (alive.peak - by_layer + alive.away - by_module).base(),
      fmt::format("{} per micro-batch x {:g} in flight{}", format_quantity(each),
                  static_cast<double>(alive.chunks) / static_cast<double>(here.activations.size()),
                  add.r.offloaded > bytes{}
                      ? fmt::format(", {} of it in CPU memory", format_quantity(add.r.offloaded))
                      : ""));
}

/// The loss and what is allocated beside the activations as the backward pass begins.
void add_temporaries(memory_adder& add, const training_context& c, const stage_content& here) {
  const training_workload& w = c.workload;
  const double tp = static_cast<double>(w.par.tp), hidden = static_cast<double>(c.net.hidden);
  const double losses = here.head ? 1 + static_cast<double>(c.net.mtp_layers) : 0;  // each prediction has its own
  const double logits = 4 * c.tokens.whole * static_cast<double>(c.net.vocab) / tp * losses;
  add("logits", logits,
      losses > 1 ? fmt::format("FP32 logits of one micro-batch, for each of {:g} losses", losses)
                 : std::string("FP32 logits of one micro-batch"));
  const double waiting = here.head ? static_cast<double>(deferred_head_gradients(c)) : 0;
  if (waiting > 0)
    add("head gradients", waiting * 2 * c.tokens.whole * (hidden + static_cast<double>(c.net.vocab) / tp),
        fmt::format(
            "BF16 inputs and logit gradients of {:g} micro-batches, for the LM head's deferred weight gradient",
            waiting));
  if (const double again = here.again.base() - logits; again > 0)  // logits have been released by then
    add("recomputed", again,
        fmt::format("activations of layers during recomputation{}", here.head ? ", beyond the logits" : ""));
  // Activations peak as the backward pass begins, with the LM head and then the last layer. Most temporary memory
  // holds weight gradients, which frozen layers do not compute.
  const bool frozen_layers = w.task == training_task::lora;
  const double of_layer = frozen_layers ? 0 : c.framework.workspace_bytes_per_layer_param.read();
  const double of_head =
      frozen_layers || !here.head || waiting > 0 ? 0 : c.framework.workspace_bytes_per_head_param.read();
  const double gathered = w.par.tp > 1 ? 4 * hidden * c.tokens.whole : 0;
  add("workspace", of_layer * here.last_layer + of_head * local_vocabulary_parameters(c) + gathered,
      fmt::format("{:g} B per dense parameter of one layer{}{}", of_layer,
                  of_head > 0 ? fmt::format(", {:g} B per parameter of the LM head", of_head) : "",
                  gathered > 0 ? ", 4 B per token and hidden unit gathered by TP" : ""));
  if (w.sharding != data_parallel_sharding::fsdp) return;
  const double weight = std::min(2.0, weight_bytes_of(c));
  add("gathered", 2 * weight * here.gathered + (frozen_layers ? 0 : 2 * here.gathered),
      fmt::format("{:g} B x {:.3f} G sharded parameters per layer, for the current and the next layer{}", weight,
                  here.gathered / 1e9, frozen_layers ? "" : ", and 2 B per gradient"));
}

/// What the framework's allocator does not count as allocated.
void add_runtime(memory_adder& add, const training_context& c) {
  const training_profile& t = c.framework;
  add.r.allocated = add.r.peak;
  add("fragmentation", t.fragmentation * add.r.allocated.base(),
      fmt::format("{:g} % of what is allocated", 100 * t.fragmentation));
  const std::int64_t groups = communicators_of(c.net, c.workload);
  const bool exchanges =
      has_routed_experts(c.net) && c.workload.par.ep > 1 && c.workload.dispatcher == moe_dispatcher::deduplicated;
  const bytes buffers =
      t.communicator_buffers * static_cast<double>(groups) + (exchanges ? t.ep_buffers.read() : bytes{});
  add("communication", buffers.base(),
      fmt::format(
          "{} for each of {} communicators{}", format_quantity(t.communicator_buffers.read()), groups,
          exchanges ? fmt::format(", {} of the token exchange", format_quantity(t.ep_buffers.read())) : ""));
  add("reserve", t.reserve.base(), "CUDA context, modules and libraries");
}

memory_report stage_memory(const training_context& c, std::int64_t stage) {
  const training_workload& w = c.workload;
  const bool dense_shared = gradient_group(w).ranks > 1, experts_shared = expert_gradient_group(w).ranks > 1;
  const stage_content here = content_of(c, stage, dense_shared, experts_shared);
  memory_report r;
  r.where = fmt::format("stage {}", stage);
  r.usable = c.machine.gpu.hbm_usable;
  r.error = training_memory_error;
  memory_adder add{r};
  add_model_states(add, c, here);
  add_activations(add, c, here, stage);
  add_temporaries(add, c, here);
  add_runtime(add, c);
  return r;
}

void add_divisibility(std::vector<std::string>& out, std::int64_t whole, std::int64_t part,
                      std::string_view what) {
  if (whole % part != 0) out.push_back(fmt::format("{} ({} is not divisible by {})", what, whole, part));
}

std::vector<layer_spec> distinct_layers(const model& m) {
  std::vector<layer_spec> out;
  for (const auto* list : {&m.layers, &m.mtp_block})
    for (const layer_spec& l : *list)
      if (std::find(out.begin(), out.end(), l) == out.end()) out.push_back(l);
  return out;
}

void add_layer_problems(std::vector<std::string>& reasons, const layer_spec& l, const training_workload& w) {
  std::vector<std::string> out;
  const parallelism& par = w.par;
  if (w.packed && (l.sparse_keys > 0 || l.attention == attention_kind::compressed))
    out.push_back("packed sequences are not modelled for sparse or compressed attention");
  if (l.heads > 0) add_divisibility(out, l.heads, par.tp, "tensor parallelism must divide the attention heads");
  if (w.cp_exchange == context_exchange::all_to_all && par.cp > 1 && l.heads > 0) {
    if (l.attention == attention_kind::grouped_query)
      add_divisibility(out, l.heads, par.tp * par.cp,
                       "tensor x context parallelism by all-to-all must divide the attention heads");
    else out.push_back("context parallelism by all-to-all is modelled for grouped-query attention only; use p2p");
  }
  if (l.attention == attention_kind::compressed)
    add_divisibility(out, l.compressed.o_groups, par.tp,
                     "tensor parallelism must divide the groups of the output projection");
  if (l.scan.heads > 0) {
    const bool delta = l.attention == attention_kind::linear;
    const std::int64_t groups = delta ? l.scan.key_heads : l.scan.groups, parts = par.tp * par.cp;
    const char* what = delta ? "tensor x context parallelism must divide the heads of linear attention"
                             : "tensor x context parallelism must divide the heads of the scan";
    add_divisibility(out, l.scan.heads, parts, what);
    if (groups > 0) add_divisibility(out, groups, par.tp, "tensor parallelism must divide the groups of the scan");
  }
  if (l.ffn_hidden > 0)
    add_divisibility(out, l.ffn_hidden, par.tp, "tensor parallelism must divide the FFN width");
  if (l.routed()) add_divisibility(out, l.moe.experts, par.ep, "expert parallelism must divide the experts");
  for (std::string& reason : out)
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(std::move(reason));
}

}  // namespace

std::vector<std::string> training_problems(const platform& p, const model& m, const training_workload& w) {
  std::vector<std::string> out = placement_problems(w.par, w.place, p);
  for (const precision x : std::set{w.gemm_precision, precision::bf16})
    if (!p.gpu.dense_peak(x))
      out.push_back(fmt::format("{} has no {} peak rate and cannot run this step", p.gpu.name, name(x)));
  const parallelism& par = w.par;
  for (const layer_spec& l : distinct_layers(m)) add_layer_problems(out, l, w);
  const bool routed = has_routed_experts(m);
  if (!routed && par.ep != 1) out.push_back("expert parallelism needs a model with routed experts");
  if (!routed && (w.expert_capacity_factor || w.pad_to_capacity))
    out.push_back("expert capacity needs a model with routed experts");
  if (w.pad_to_capacity && w.dispatcher == moe_dispatcher::deduplicated && par.ep > 1)
    out.push_back(
        "only the alltoall dispatcher pads to capacity; the deduplicated one (Megatron-LM's flex) sends actual "
        "tokens");
  if (w.sharding == data_parallel_sharding::optim_grads && w.schedule == pipeline_schedule::dualpipe)
    out.push_back(
        "sharding optim_grads reduces gradients after every micro-batch, but dualpipe reduces its two copies at "
        "the end; use another sharding");
  if (w.sharding_groups > 1) {
    add_divisibility(out, par.cp * par.dp, w.sharding_groups, "sharding groups must divide dp x cp");
    if (routed)
      add_divisibility(out, std::max<std::int64_t>(1, par.tp * par.cp * par.dp / (par.ep * par.etp)),
                       w.sharding_groups, "sharding groups must divide the copies of an expert");
    if (w.sharding == data_parallel_sharding::replicated)
      out.push_back("sharding groups have no effect with replicated data parallelism; use another sharding");
  }
  if (w.recompute.full && !w.recompute.block && w.recompute.num_layers > 1 && m.mtp_layers > 0)
    out.push_back(
        "prediction modules are recomputed one layer at a time; method uniform needs recompute_num_layers 1");
  if (routed)
    add_divisibility(out, par.tp * par.cp * par.dp, par.ep * par.etp, "ep x etp must divide tp x cp x dp");
  const std::int64_t batch = w.micro_batch_size * par.dp;
  if (w.global_batch_size % batch != 0 || w.global_batch_size < batch)
    out.push_back(fmt::format("the global batch of {} must be a multiple of micro-batch {} x dp {}",
                              w.global_batch_size, w.micro_batch_size, par.dp));
  add_divisibility(out, w.seq_length, par.cp * (par.sequence_parallel ? par.tp : 1),
                   "context and sequence parallelism must divide the sequence");
  const auto unequal = split_problems(m, w);
  out.insert(out.end(), unequal.begin(), unequal.end());
  const auto layers = static_cast<std::int64_t>(m.layers.size());
  if (!w.split.given() && par.pp * par.vp > layers + (layers % (par.pp * par.vp) == 0 ? 0 : 2))
    out.push_back(fmt::format("pp {} x vp {} = {} model chunks exceed the {} layers", par.pp, par.vp,
                              par.pp * par.vp, layers));
  if (par.vp > 1 && par.pp == 1) out.push_back("vp needs pp > 1");
  const auto order = schedule_problems(w);
  out.insert(out.end(), order.begin(), order.end());
  const double passes = static_cast<double>(par.pp * par.vp) * static_cast<double>(w.micro_batches());
  if (passes > max_passes)
    out.push_back(
        fmt::format("the step has {:.3g} passes of micro-batches through model chunks; the limit is {:.3g}",
                    passes, max_passes));
  return out;
}

step_residuals kind_of_step(const platform& p, const model& m, const training_workload& w) {
  constexpr int largest_server = 16;  // GPUs per NVLink domain
  step_residuals k;
  k.rack = p.gpus_per_rack() > largest_server;
  const double element = bytes_per_element(w.gemm_precision);
  k.weight_bits = element >= 2 ? 16 : element < 1 ? 4 : 8;
  k.experts = has_routed_experts(m);
  return k;
}

step_band step_band_90(const platform& p, const stack& s, const model& m, const training_workload& w) {
  const step_residuals k = kind_of_step(p, m, w);
  for (const step_residuals& r : s.training->residuals)
    if (r.rack == k.rack && r.weight_bits == k.weight_bits && r.experts == k.experts)
      return {std::exp(r.low), std::exp(r.high)};
  const double half = k.experts ? s.training->moe_error_90 : s.training->error_90;
  return {1 - half, 1 + half};
}

double gradient_bytes(const training_profile& t, const training_workload& w) {
  if (w.optimizer.fp32_gradients) return *w.optimizer.fp32_gradients ? 4 : 2;
  const bool wide = bytes_per_element(w.gemm_precision) >= 2 && w.gemm_precision != precision::fp16;
  const double stated = t.gradient_memory_bytes;
  return wide || w.task == training_task::sft ? std::max(4.0, stated) : std::min(4.0, stated);
}

memory_report training_memory(const platform& p, const stack& s, const model& m, const training_workload& w) {
  const training_context c(p, s, m, w);
  memory_report worst;
  for (std::int64_t stage = 0; stage < w.par.pp; ++stage) {
    memory_report r = stage_memory(c, stage);
    const bool worse = r.fits() == worst.fits() ? r.peak > worst.peak : !r.fits();
    if (stage == 0 || worse) worst = std::move(r);
  }
  return worst;
}

}  // namespace nvlsim
