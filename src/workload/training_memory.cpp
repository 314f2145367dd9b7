// Whether a training layout is possible and fits. [docs/models-and-assumptions.md#memory]
#include <fmt/format.h>

#include <algorithm>

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

memory_report stage_memory(const training_context& c, std::int64_t stage) {
  const training_workload& w = c.work;
  const std::int64_t chunks = w.par.pp * w.par.vp;
  const auto layers = layers_by_chunk(static_cast<std::int64_t>(c.net.layers.size()), chunks);
  std::int64_t here = 0, most = 0;
  for (std::int64_t v = 0; v < w.par.vp; ++v) {
    const std::int64_t n = layers[static_cast<std::size_t>(v * w.par.pp + stage)];
    here += n;
    most = std::max(most, n);
  }
  const layer_spec& l = c.net.layers.front();
  const double per_layer = local_layer_parameters(c, l), vocabulary = local_vocabulary_parameters(c);
  const bool first = stage == 0, last = stage == w.par.pp - 1;
  const int tables = c.net.tied_embeddings && first && last ? 1 : (first ? 1 : 0) + (last ? 1 : 0);
  const double params = per_layer * static_cast<double>(here) + vocabulary * tables;
  const double group = static_cast<double>(w.par.dp * w.par.cp);
  const bool lora = w.task == training_task::lora;
  const double trained = lora ? params * lora_share : params;
  const double shard = w.sharding == data_parallel_sharding::replicated ? 1.0 : group;
  const bool fsdp = w.sharding == data_parallel_sharding::fsdp;
  const double weight_shard = fsdp ? group : 1.0;

  memory_report r;
  r.where = fmt::format("stage {}", stage);
  r.usable = c.machine.gpu.hbm_usable;
  const auto add = [&](const char* name, double size, std::string why) {
    if (size > 0) r.items.push_back({name, bytes::from_base(size), std::move(why)});
    r.peak += bytes::from_base(size);
  };
  add("weights", 2 * params / weight_shard,
      fmt::format("2 B (BF16) x {:.3f} G parameters of this GPU{}", params / 1e9, fsdp ? ", sharded" : ""));
  add("gradients", c.framework.gradient_bytes * trained / weight_shard,
      fmt::format("{:g} B x {:.3f} G trained parameters{}", c.framework.gradient_bytes, trained / 1e9, fsdp ? ", sharded" : ""));
  add("optimizer", 12 * trained / shard,
      fmt::format("12 B (FP32 master and two moments) x {:.3f} G / {:g} data-parallel shards", trained / 1e9, shard));
  const std::int64_t alive = chunks_in_flight(w, stage);
  const double layers_alive = static_cast<double>(alive) * static_cast<double>(here) / static_cast<double>(w.par.vp);
  const double kept = std::max(0.0, layers_alive - static_cast<double>(std::min(w.offload_layers, here)) *
                                                       static_cast<double>(alive) / static_cast<double>(w.par.vp));
  add("activations", stored_activations(c, l).base() * kept,
      fmt::format("{} x {:g} layers in flight ({} chunks of micro-batches)", format_quantity(stored_activations(c, l)), kept, alive));
  if (last)
    add("logits", 4 * c.tokens * static_cast<double>(c.net.vocab) / static_cast<double>(w.par.tp),
        "FP32 logits of one micro-batch");
  add("workspace", c.framework.workspace_bytes_per_layer_param * per_layer + 5 * static_cast<double>(c.net.hidden) * c.tokens,
      fmt::format("{:g} B a parameter of one layer, 5 B a token and hidden unit", c.framework.workspace_bytes_per_layer_param));
  add("reserve", c.framework.reserve.base(), "CUDA context, collective library and allocator");
  return r;
}

void add_divisibility(std::vector<std::string>& out, std::int64_t whole, std::int64_t part, std::string_view what) {
  if (whole % part != 0) out.push_back(fmt::format("{} ({} / {} leaves a rest)", what, whole, part));
}

}  // namespace

std::vector<std::string> training_problems(const platform& p, const model& m, const training_workload& w) {
  std::vector<std::string> out = placement_problems(w.par, w.place, p);
  const parallelism& par = w.par;
  for (const layer_spec& l : m.layers) {
    add_divisibility(out, l.heads, par.tp, "tensor parallelism must divide the attention heads");
    add_divisibility(out, l.ffn_hidden, par.tp, "tensor parallelism must divide the FFN width");
    break;  // layers are alike in the supported models
  }
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
  if (par.vp > 1 && w.schedule == pipeline_schedule::one_f_one_b)
    out.push_back("schedule 1f1b has one model chunk a stage; use interleaved for vp > 1");
  return out;
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
