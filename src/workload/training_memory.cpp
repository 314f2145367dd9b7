// Whether a training layout is possible and fits. [docs/models-and-assumptions.md#memory]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "nvlsim/training.hpp"
#include "nvlsim/units_text.hpp"
#include "workload/training_costs.hpp"

namespace nvlsim {
namespace {

constexpr double lora_share = 0.002;  // [assumed] as in the cost of its collectives

/// Micro-batches (in chunks of this stage) whose activations are alive at the schedule's peak.
std::int64_t chunks_in_flight(const training_workload& w, std::int64_t stage) {
  std::int64_t alive = 0, peak = 0;
  for (const pipeline_slot& s : stage_schedule(w.par, w.micro_batches(), stage)) {
    alive += s.forward ? 1 : -1;
    peak = std::max(peak, alive);
  }
  return peak;
}

/// What one pipeline stage holds.
struct stage_content {
  local_parameters parameters;      ///< layers and vocabulary tables
  double largest_layer = 0;         ///< dense parameters of one layer
  bytes activations;                ///< of one micro-batch through all its layers
  std::int64_t layers = 0;
};

stage_content content_of(const training_context& c, std::int64_t stage) {
  const training_workload& w = c.work;
  const auto counts = layers_by_chunk(static_cast<std::int64_t>(c.net.layers.size()), w.par.pp * w.par.vp, c.net.mtp_layers);
  const bool first = stage == 0, last = stage == w.par.pp - 1;
  stage_content s;
  std::int64_t next = 0;
  for (std::size_t chunk = 0; chunk < counts.size(); ++chunk)
    for (const std::int64_t end = next + counts[chunk]; next < end; ++next) {
      if (static_cast<std::int64_t>(chunk) % w.par.pp != stage) continue;
      const layer_spec& l = c.net.layers[std::min(static_cast<std::size_t>(next), c.net.layers.size() - 1)];
      const local_parameters p = parameters_on_gpu(c.net, l, w.par);
      s.parameters.dense += p.dense;
      s.parameters.expert += p.expert;
      s.largest_layer = std::max(s.largest_layer, p.dense);
      s.activations += stored_activations(c.net, l, w);
      ++s.layers;
    }
  const int tables = c.net.tied_embeddings && first && last ? 1 : (first ? 1 : 0) + (last ? 1 : 0);
  s.parameters.dense += local_vocabulary_parameters(c) * tables;
  return s;
}

memory_report stage_memory(const training_context& c, std::int64_t stage) {
  const training_workload& w = c.work;
  const stage_content here = content_of(c, stage);
  const bool fsdp = w.sharding == data_parallel_sharding::fsdp, replicated = w.sharding == data_parallel_sharding::replicated;
  const double dense_group = data_group(w.par, w.place).ranks, expert_group_size = expert_data_group(w.par, w.place).ranks;
  const double trained = w.task == training_task::lora ? lora_share : 1.0;
  /// Parameters left on one GPU when they are sharded, or all.
  const auto held = [&](bool sharded) {
    return sharded ? here.parameters.dense / dense_group + here.parameters.expert / expert_group_size : here.parameters.total();
  };
  const double params = held(fsdp), updated = held(!replicated) * trained;

  memory_report r;
  r.where = fmt::format("stage {}", stage);
  r.usable = c.machine.gpu.hbm_usable;
  const auto add = [&](const char* name, double size, std::string why) {
    if (size > 0) r.items.push_back({name, bytes::from_base(size), std::move(why)});
    r.peak += bytes::from_base(size);
  };
  add("weights", 2 * params, fmt::format("2 B (BF16) x {:.3f} G parameters of this GPU{}", params / 1e9, fsdp ? ", sharded" : ""));
  add("gradients", c.framework.gradient_memory_bytes * params * trained,
      fmt::format("{:g} B x {:.3f} G trained parameters{}", c.framework.gradient_memory_bytes, params * trained / 1e9, fsdp ? ", sharded" : ""));
  add("optimizer", 12 * updated, fmt::format("12 B (FP32 master and two moments) x {:.3f} G parameters updated here", updated / 1e9));
  const double alive = static_cast<double>(chunks_in_flight(w, stage)) / static_cast<double>(w.par.vp);
  const double kept = here.layers > 0 ? std::max(0.0, 1 - static_cast<double>(w.offload_layers) / static_cast<double>(here.layers)) : 0;
  add("activations", here.activations.base() * alive * kept,
      fmt::format("{} a micro-batch x {:g} in flight{}", format_quantity(here.activations), alive, kept < 1 ? ", the rest offloaded" : ""));
  if (stage == w.par.pp - 1)
    add("logits", 4 * c.tokens.whole * static_cast<double>(c.net.vocab) / static_cast<double>(w.par.tp), "FP32 logits of one micro-batch");
  add("workspace", c.framework.workspace_bytes_per_layer_param * here.largest_layer + 5 * static_cast<double>(c.net.hidden) * c.tokens.whole,
      fmt::format("{:g} B a dense parameter of one layer, 5 B a token and hidden unit", c.framework.workspace_bytes_per_layer_param));
  add("reserve", c.framework.reserve.base(), "CUDA context, collective library and allocator");
  return r;
}

/// What a model may have beyond dense layers.
constexpr std::array<std::string_view, 4> trained = {"latent attention", "sliding windows", "routed experts",
                                                     "multi-token prediction"};

void add_divisibility(std::vector<std::string>& out, std::int64_t whole, std::int64_t part, std::string_view what) {
  if (whole % part != 0) out.push_back(fmt::format("{} ({} / {} leaves a rest)", what, whole, part));
}

}  // namespace

std::vector<std::string> training_problems(const platform& p, const model& m, const training_workload& w) {
  std::vector<std::string> out = placement_problems(w.par, w.place, p);
  const parallelism& par = w.par;
  if (const auto unknown = beyond_dense(m, trained); !unknown.empty())
    out.push_back(fmt::format("training does not support {} yet", fmt::join(unknown, ", ")));
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const layer_spec& l : m.layers) {
    if (!seen.insert({l.heads, l.ffn_hidden + l.moe.experts}).second) continue;
    if (l.heads > 0) add_divisibility(out, l.heads, par.tp, "tensor parallelism must divide the attention heads");
    if (l.ffn_hidden > 0) add_divisibility(out, l.ffn_hidden, par.tp, "tensor parallelism must divide the FFN width");
    if (l.routed()) add_divisibility(out, l.moe.experts, par.ep, "expert parallelism must divide the experts");
  }
  const bool routed = std::any_of(m.layers.begin(), m.layers.end(), [](const layer_spec& l) { return l.routed(); });
  if (!routed && par.ep != 1) out.push_back("expert parallelism needs a model with routed experts");
  if (routed) add_divisibility(out, par.tp * par.cp * par.dp, par.ep * par.etp, "ep x etp must divide tp x cp x dp");
  const std::int64_t batch = w.micro_batch_size * par.dp;
  if (w.global_batch_size % batch != 0 || w.global_batch_size < batch)
    out.push_back(fmt::format("the global batch of {} must be a multiple of micro-batch {} x dp {}", w.global_batch_size,
                              w.micro_batch_size, par.dp));
  add_divisibility(out, w.seq_length, par.cp * (par.sequence_parallel ? par.tp : 1),
                   "context and sequence parallelism must divide the sequence");
  const auto layers = static_cast<std::int64_t>(m.layers.size());
  if (par.pp * par.vp > layers + (layers % (par.pp * par.vp) == 0 ? 0 : 2))
    out.push_back(fmt::format("pp {} x vp {} = {} model chunks exceed the {} layers", par.pp, par.vp, par.pp * par.vp, layers));
  if (par.vp > 1 && par.pp == 1) out.push_back("vp needs pp > 1");
  if (par.vp > 1 && w.micro_batches() % par.pp != 0)
    out.push_back(fmt::format("interleaving runs micro-batches in groups of pp {}, and the global batch gives each replica {}",
                              par.pp, w.micro_batches()));
  const double passes = static_cast<double>(par.pp * par.vp) * static_cast<double>(w.micro_batches());
  if (passes > most_passes)
    out.push_back(fmt::format("{:.3g} passes of micro-batches through model chunks are more than the {:.3g} simulated in one step",
                              passes, most_passes));
  if (par.vp > 1 && w.schedule == pipeline_schedule::one_f_one_b)
    out.push_back("schedule 1f1b has one model chunk a stage; use interleaved for vp > 1");
  return out;
}

double step_error_90(const stack& s, const model& m) {
  const bool routed = std::any_of(m.layers.begin(), m.layers.end(), [](const layer_spec& l) { return l.routed(); });
  return routed ? s.training->moe_error_90 : s.training->error_90;
}

memory_report training_memory(const platform& p, const stack& s, const model& m, const training_workload& w) {
  const training_context c(p, s, m, w);
  memory_report worst;
  for (std::int64_t stage = 0; stage < w.par.pp; ++stage) {
    memory_report r = stage_memory(c, stage);
    if (stage == 0 || r.peak > worst.peak) worst = std::move(r);
  }
  return worst;
}

}  // namespace nvlsim
