// Memory of training layouts. [docs/models-and-assumptions.md#memory]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <set>
#include <type_traits>
#include <utility>

#include "nvlsim/training/idle_settings.hpp"
#include "nvlsim/training/training.hpp"
#include "nvlsim/units/units_text.hpp"
#include "training/encoder.hpp"
#include "training/operator_list.hpp"
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
  double vectors = 0;              ///< parameters outside layer matrices: vocabulary tables
  double towers = 0;               ///< of encoders in front of the first layer
  double adapters = 0;             ///< of LoRA with a stated rank
  std::vector<bytes> activations;  ///< per micro-batch, by local chunk
  std::vector<bytes> away;         ///< the same in CPU memory, by modules
  bytes transit;                   ///< of them, those of the largest layer, which is on the GPU while it computes
  bytes again;                     ///< activations of a recomputed unit of layers, beyond its input
  std::int64_t layers = 0;
  bool head = false;  ///< computes the loss
};

/// What one layer holds and keeps.
struct layer_content {
  local_parameters parameters;
  stored_bytes kept;  ///< for the backward pass, as the workload recomputes it
  bytes all;          ///< the same without any recomputation; 0 unless whole layers are recomputed
  double adapters = 0;
};

/// Adds up what the layers of a chunk keep: all activations, or the input of each recomputed unit.
class chunk_activations {
 public:
  explicit chunk_activations(const recompute_spec& r) : recompute_(r) {}

  void add(const layer_content& l, std::int64_t index, bool predicts) {
    const bytes input = l.kept.here;  // only the layer's input under full recompute
    if (!recompute_.full) {
      stored_ += input;
      away_ += l.kept.away;
      transit_ = std::max(transit_, l.kept.away);
    } else if (!recomputes_layer(recompute_, index, predicts)) {
      stored_ += l.all;
      whole_ = true;
    } else {
      const bool begins = recompute_.block || index % recompute_.num_layers == 0;
      unit_ = begins ? l.all - input : unit_ + l.all;
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
  const recompute_spec& recompute_;
  bytes stored_, away_, transit_, unit_, largest_;
  bool whole_ = false;  ///< some layer keeps everything
};

/// Parameters of the adapters of a layer on one GPU: two narrow matrices on each named projection.
double adapter_parameters(const model& m, const layer_spec& l, const training_workload& w) {
  double sizes = 0;
  for (const weight_matrix& x : layer_matrices(l, m.hidden)) {
    if (!adapted(l, w.lora, x.name)) continue;
    const double held = x.part == matrix_part::experts ? real(x.groups) / real(w.par.ep) : 1;
    sizes += held * real(x.out + (x.joined ? 0 : x.in));
  }
  return real(w.lora.rank) / real(w.par.tp) * sizes;
}

/// The contents of layers, counted once for equal ones.
class layer_contents {
 public:
  explicit layer_contents(const training_context& c) : c_(c), all_kept_(c.workload) { all_kept_.recompute = {}; }

  const layer_content& of(const layer_spec& l) {
    for (const auto& [spec, content] : known_)
      if (spec == &l || *spec == l) return content;
    const training_workload& w = c_.workload;
    layer_content x{parameters_on_gpu(c_.net, l, w.par),
                    stored_activations(c_.net, l, w, c_.framework),
                    {},
                    adapter_parameters(c_.net, l, w)};
    if (w.recompute.full) {
      const stored_bytes all = stored_activations(c_.net, l, all_kept_, c_.framework);
      x.all = all.here + all.away;
    }
    return known_.emplace_back(&l, x).second;
  }

 private:
  const training_context& c_;
  training_workload all_kept_;
  std::deque<std::pair<const layer_spec*, layer_content>> known_;
};

/// What a trained encoder of images keeps of a micro-batch.
bytes kept_by_encoder(const training_context& c) {
  const auto e = trains_towers(c.workload) ? image_encoder_of(c.net, c.workload) : std::nullopt;
  if (!e) return {};
  return stored_activations(e->net, e->net.layers.front(), e->work, c.framework).here *
         static_cast<double>(e->net.layers.size());
}

/// `gathered` counts only parameters whose sharding group has more than one rank.
stage_content content_of(const training_context& c, layer_contents& layers, std::int64_t stage) {
  const training_workload& w = c.workload;
  const bool shared_dense = gradient_group(w).ranks > 1, shared_experts = expert_gradient_group(w).ranks > 1;
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
    chunk_activations kept(w.recompute);
    double last_layer = 0;
    for (std::int64_t i = begin; i < begin + *here; ++i) {
      const auto at = static_cast<std::size_t>(i), decoder = c.net.layers.size();
      const layer_spec& l =
          at < decoder ? c.net.layers[at] : c.net.mtp_block[(at - decoder) % c.net.mtp_block.size()];
      const layer_content& x = layers.of(l);
      const local_parameters& p = x.parameters;
      s.parameters.dense += p.dense;
      s.parameters.expert += p.expert;
      last_layer = p.dense;
      s.gathered = std::max(s.gathered, (shared_dense ? p.dense : 0) + (shared_experts ? p.expert : 0));
      kept.add(x, i - begin, at >= decoder);
      s.adapters += x.adapters;
      ++s.layers;
    }
    s.activations[static_cast<std::size_t>(v)] = kept.stored();
    if (first) s.activations[static_cast<std::size_t>(v)] += kept_by_encoder(c);
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
  if (element >= 2) return tensor_bytes(w);
  if (w.frozen_layers()) return std::max(1.0, element);
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
  bool listed = true;  ///< whether items are kept, with their reasons

  /// `why` gives the reason.
  template <class Why>
  void operator()(const char* name, double size, Why why) {
    if (listed && size > 0) {
      if constexpr (std::is_invocable_v<Why>) r.items.push_back({name, bytes::from_base(size), why()});
      else r.items.push_back({name, bytes::from_base(size), why});
    }
    r.peak += bytes::from_base(size);
  }
};

/// Weights, gradients and the optimizer's state.
void add_model_states(memory_adder& add, const training_context& c, const stage_content& here) {
  const training_workload& w = c.workload;
  const bool fsdp = w.sharding == data_parallel_sharding::fsdp,
             replicated = w.sharding == data_parallel_sharding::replicated;
  const double dense_group = gradient_group(w).ranks, expert_group = expert_gradient_group(w).ranks;
  const bool adapters = w.task == training_task::lora, stated = adapters && w.lora.rank > 0,
             frozen = w.frozen_layers();
  /// Parameters on one GPU, sharded or not.
  const auto held = [&](bool sharded) {
    return sharded ? here.parameters.dense / dense_group + here.parameters.expert / expert_group
                   : here.parameters.total();
  };
  const bool shared_gradients = fsdp || w.sharding == data_parallel_sharding::optim_grads;
  const double params = held(fsdp), tables = here.vocabulary / (fsdp ? dense_group : 1), layers = params - tables;
  const char* sharded = fsdp ? ", sharded" : "";
  const double weight = weight_bytes_of(c), wide = tensor_bytes(w);
  if (weight != wide)
    add("weights", weight * layers + wide * tables, [&] {
      return fmt::format(
          "{:g} B x {:.3f} G{} parameters per GPU{}{}", weight, layers / 1e9, frozen ? " frozen" : "",
          tables > 0 ? fmt::format(", 2 B x {:.3f} G vocabulary parameters", tables / 1e9) : "", sharded);
    });
  else
    add("weights", wide * params, [&] {
      return fmt::format("{:g} B ({}) x {:.3f} G parameters per GPU{}", wide, wide > 2 ? "FP32" : "BF16",
                         params / 1e9, sharded);
    });
  if (here.towers > 0)
    add("towers", wide * here.towers,
        [&] { return fmt::format("{:g} B x {:.3f} G parameters of encoders", wide, here.towers / 1e9); });
  const double towers = trains_towers(w) ? here.towers : 0;
  const auto trained = [&](bool is_sharded) {
    const double group = is_sharded ? dense_group : 1;
    if (stated) return here.adapters / group;
    return held(is_sharded) * (adapters ? lora_share : frozen ? 0.0 : 1.0) + towers / group;
  };
  const double gradient = gradient_bytes(c.framework, w), reduced = trained(shared_gradients);
  add("gradients", gradient * reduced, [&] {
    return fmt::format("{:g} B x {:.3f} G trained parameters{}", gradient, reduced / 1e9,
                       shared_gradients ? ", sharded" : "");
  });
  const optimizer_spec& o = w.optimizer;
  const auto [first, second] = moment_bytes(w);
  // FP32 weights are their own master copy.
  const double master = wide > 2 ? 0 : o.master;
  const double updated = trained(!replicated), moments = first + second, both = master + moments;
  const bool muon = o.kind == optimizer_kind::muon && !frozen;
  const double others = muon ? std::min(updated, here.vocabulary / (replicated ? 1 : dense_group)) : 0;
  const double each = muon ? master + first : both;
  add("optimizer", each * (updated - others) + both * others, [&] {
    if (master == 0)
      return fmt::format("{:g} B (moments) x {:.3f} G parameters updated by this GPU", each, updated / 1e9);
    return muon
               ? fmt::format(
                     "{:g} B (master copy and momentum) x {:.3f} G parameters of matrices, {:g} B x {:.3f} G "
                     "others",
                     each, (updated - others) / 1e9, both, others / 1e9)
               : fmt::format("{:g} B ({} master copy and two moments{}) x {:.3f} G parameters updated by this GPU",
                             each, master < 4 ? "16-bit" : "FP32",
                             moments < 8 ? fmt::format(" of {:g} B together", moments) : "", updated / 1e9);
  });
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
  add("activations", (alive.peak - by_layer + alive.away - by_module).base(), [&] {
    return fmt::format("{} per micro-batch x {:g} in flight{}", format_quantity(each),
                       static_cast<double>(alive.chunks) / static_cast<double>(here.activations.size()),
                       add.r.offloaded > bytes{}
                           ? fmt::format(", {} of it in CPU memory", format_quantity(add.r.offloaded))
                           : "");
  });
}

/// Which temporaries to count: all; all but those of recomputation; those that every sharding has.
enum class temporaries { all, kept, certain };

/// The loss and what is allocated beside the activations as the backward pass begins.
void add_temporaries(memory_adder& add, const training_context& c, const stage_content& here,
                     temporaries counted) {
  const training_workload& w = c.workload;
  const double tp = static_cast<double>(w.par.tp), hidden = static_cast<double>(c.net.hidden);
  const double losses = here.head ? 1 + static_cast<double>(c.net.mtp_layers) : 0;  // each prediction has its own
  const double logits = 4 * c.tokens.whole * static_cast<double>(c.net.vocab) / tp * losses;
  add("logits", logits, [&] {
    return losses > 1 ? fmt::format("FP32 logits of one micro-batch, for each of {:g} losses", losses)
                      : std::string("FP32 logits of one micro-batch");
  });
  const bool certain = counted == temporaries::certain;
  const double waiting = here.head && !certain ? static_cast<double>(deferred_head_gradients(c)) : 0;
  if (waiting > 0)
    add("head gradients",
        waiting * tensor_bytes(w) * c.tokens.whole * (hidden + static_cast<double>(c.net.vocab) / tp), [&] {
          return fmt::format(
              "BF16 inputs and logit gradients of {:g} micro-batches, for the LM head's deferred weight gradient",
              waiting);
        });
  // Logits have been released by then.
  if (const double again = here.again.base() - logits; again > 0 && counted == temporaries::all)
    add("recomputed", again, [&] {
      return fmt::format("activations of layers during recomputation{}", here.head ? ", beyond the logits" : "");
    });
  // Activations peak as the backward pass begins, with the LM head and then the last layer. Most temporary memory
  // holds weight gradients, which frozen layers do not compute.
  const bool frozen_layers = w.frozen_layers();
  const double of_layer = frozen_layers ? 0 : c.framework.workspace_bytes_per_layer_param.read();
  const double of_head = frozen_layers || !here.head || waiting > 0 || certain
                             ? 0
                             : c.framework.workspace_bytes_per_head_param.read();
  const double gathered = w.par.tp > 1 ? 4 * hidden * c.tokens.whole : 0;
  add("workspace", of_layer * here.last_layer + of_head * local_vocabulary_parameters(c) + gathered, [&] {
    return fmt::format("{:g} B per dense parameter of one layer{}{}", of_layer,
                       of_head > 0 ? fmt::format(", {:g} B per parameter of the LM head", of_head) : "",
                       gathered > 0 ? ", 4 B per token and hidden unit gathered by TP" : "");
  });
  if (w.sharding != data_parallel_sharding::fsdp || certain) return;
  const double weight = std::min(tensor_bytes(w), weight_bytes_of(c));
  add("gathered", 2 * weight * here.gathered + (frozen_layers ? 0 : 2 * here.gathered), [&] {
    return fmt::format("{:g} B x {:.3f} G sharded parameters per layer, for the current and the next layer{}",
                       weight, here.gathered / 1e9, frozen_layers ? "" : ", and 2 B per gradient");
  });
}

/// What the framework's allocator does not count as allocated.
void add_runtime(memory_adder& add, const training_context& c) {
  const training_profile& t = c.framework;
  add.r.allocated = add.r.peak;
  add("fragmentation", t.fragmentation * add.r.allocated.base(),
      [&] { return fmt::format("{:g} % of what is allocated", 100 * t.fragmentation); });
  const std::int64_t groups = communicators_of(c.net, c.workload);
  const bool exchanges = has_routed_experts(c.net) && c.workload.par.ep > 1 && sends_once(c.workload.dispatcher);
  const bytes buffers =
      t.communicator_buffers * static_cast<double>(groups) + (exchanges ? t.ep_buffers.read() : bytes{});
  add("communication", buffers.base(), [&] {
    return fmt::format(
        "{} for each of {} communicators{}", format_quantity(t.communicator_buffers.read()), groups,
        exchanges ? fmt::format(", {} of the token exchange", format_quantity(t.ep_buffers.read())) : "");
  });
  add("reserve", t.reserve.base(), "CUDA context, modules and libraries");
}

memory_report stage_memory(const training_context& c, layer_contents& layers, std::int64_t stage,
                           temporaries counted = temporaries::all) {
  const stage_content here = content_of(c, layers, stage);
  memory_report r;
  if (!c.passes) r.where = fmt::format("stage {}", stage);
  r.usable = c.machine.gpu.hbm_usable;
  r.error = training_memory_error;
  memory_adder add{r, !c.passes};
  add_model_states(add, c, here);
  add_activations(add, c, here, stage);
  add_temporaries(add, c, here, counted);
  add_runtime(add, c);
  return r;
}

}  // namespace

double trained_parameters(const model& m, const training_workload& w) {
  const auto all = static_cast<double>(parameters(m));
  if (w.task != training_task::lora) return w.freeze_language ? static_cast<double>(tower_parameters(m)) : all;
  if (w.lora.rank == 0) return lora_share * all;
  training_workload alone = w;  // a rank that holds everything
  alone.par = {};
  double out = 0;
  for (const layer_spec& l : m.layers) out += adapter_parameters(m, l, alone);
  return out;
}

double parameters_on_all_gpus(const model& m, const training_workload& w) {
  const auto all = static_cast<double>(parameters(m));
  if (w.sharding == data_parallel_sharding::fsdp) return all * real(w.sharding_groups);
  const double ranks = real(w.par.gpus()) / real(w.par.pp);  // that have a layer
  double out = 0, in_layers = 0;
  for (const layer_spec& l : m.layers) {
    out += parameters_on_gpu(m, l, w.par).total() * ranks;
    in_layers += static_cast<double>(layer_parameters(m, l));
  }
  return out + (all - in_layers) * ranks / real(w.par.tp);
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
  if (!unpriced_work(m, w).empty()) return {};
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
  return memory_of(training_context(p, s, m, w));
}

memory_report memory_of(const training_context& c) {
  memory_report worst;
  layer_contents layers(c);
  for (std::int64_t stage = 0; stage < c.workload.par.pp; ++stage) {
    memory_report r = stage_memory(c, layers, stage);
    const bool worse = r.fits() == worst.fits() ? r.peak > worst.peak : !r.fits();
    if (stage == 0 || worse) worst = std::move(r);
  }
  return worst;
}

bytes min_memory(const training_context& c, bool any_sharding) {
  training_workload whole = c.workload, modules = c.workload;
  for (training_workload* w : {&whole, &modules}) {
    w->recompute = {};
    if (any_sharding) w->sharding = data_parallel_sharding::fsdp;  // no state is held by more GPUs
  }
  whole.recompute.full = true;
  for (bool recompute_spec::*on :
       {&recompute_spec::core_attention, &recompute_spec::layernorm, &recompute_spec::mlp,
        &recompute_spec::activation, &recompute_spec::mla_up_proj, &recompute_spec::moe,
        &recompute_spec::shared_experts, &recompute_spec::hyper_connections})
    modules.recompute.*on = true;
  const training_context inputs_only(c, whole), least(c, modules);
  layer_contents inputs(inputs_only), remaining(least);
  const temporaries counted = any_sharding ? temporaries::certain : temporaries::kept;
  bytes out;
  for (std::int64_t stage = 0; stage < c.workload.par.pp; ++stage)
    out = std::max(out, std::min(stage_memory(inputs_only, inputs, stage, counted).peak,
                                 stage_memory(least, remaining, stage, counted).peak));
  return out;
}

}  // namespace nvlsim
