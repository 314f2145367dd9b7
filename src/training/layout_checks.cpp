// Checks of training layouts.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "nvlsim/training/training.hpp"
#include "training/pass_costs.hpp"

namespace nvlsim {
namespace {

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
  if (w.pad_to_capacity && sends_once(w.dispatcher) && par.ep > 1)
    out.push_back(
        "only the alltoall dispatcher pads to capacity; deduplicated and hybridep (Megatron-LM's flex) send "
        "actual tokens");
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
  if (w.freeze_language && w.task != training_task::lora && (w.freeze_towers || tower_parameters(m) == 0))
    out.push_back(fmt::format("freeze_language_model leaves nothing to train: the towers of {} are {}", m.name,
                              tower_parameters(m) == 0 ? "none" : "frozen, too"));
  const auto order = schedule_problems(w);
  out.insert(out.end(), order.begin(), order.end());
  if (const double passes = passes_of(w); passes > max_passes)
    out.push_back(
        fmt::format("the step has {:.3g} passes of micro-batches through model chunks; the limit is {:.3g}",
                    passes, max_passes));
  return out;
}

double passes_of(const training_workload& w) {
  return static_cast<double>(w.par.pp * w.par.vp) * static_cast<double>(w.micro_batches());
}

std::vector<std::string> flow_problems(double passes) {
  if (passes <= max_passes_in_flow) return {};
  return {
      fmt::format("{:.3g} passes of micro-batches through model chunks have their transfers as flows; the limit "
                  "is {:.3g}: take fewer micro-batches",
                  passes, max_passes_in_flow)};
}

}  // namespace nvlsim
