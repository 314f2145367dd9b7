#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nvlsim/planner/training_plan.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {
namespace {

struct recompute_name {
  bool recompute_spec::*on;
  const char* name;
};
constexpr recompute_name recompute_names[] = {{&recompute_spec::core_attention, "core_attn"},
                                              {&recompute_spec::layernorm, "layernorm"},
                                              {&recompute_spec::mlp, "mlp"},
                                              {&recompute_spec::activation, "moe_act"},
                                              {&recompute_spec::mla_up_proj, "mla_up_proj"},
                                              {&recompute_spec::moe, "moe"},
                                              {&recompute_spec::shared_experts, "shared_experts"}};

const char* recipe_of(precision p) {
  switch (p) {
    case precision::fp8:
      return "bf16_with_fp8_current_scaling_mixed";
    case precision::fp8_block:
      return "bf16_with_fp8_subchannel_scaling_mixed";
    case precision::mxfp8:
      return "bf16_with_mxfp8_mixed";
    case precision::nvfp4:
      return "bf16_with_nvfp4_mixed";
    default:
      return "bf16_mixed";
  }
}

void add_recompute(const recompute_spec& r, std::vector<std::string>& out) {
  if (r.full) {
    out.emplace_back("model.recompute_granularity=full");
    out.emplace_back(r.block ? "model.recompute_method=block" : "model.recompute_method=uniform");
    out.push_back(fmt::format("model.recompute_num_layers={}", r.num_layers));
    return;
  }
  std::vector<std::string> modules;
  for (const recompute_name& m : recompute_names)
    if (r.*m.on) modules.emplace_back(m.name);
  if (modules.empty()) return;
  out.emplace_back("model.recompute_granularity=selective");
  out.push_back(fmt::format("'model.recompute_modules=[{}]'", fmt::join(modules, ",")));
}

}  // namespace

std::vector<std::string> megatron_bridge_arguments(const scenario& s) {
  const auto& w = std::get<training_workload>(s.workload);
  const parallelism& p = w.par;
  std::vector<std::string> out;
  const auto add = [&](const char* name, std::int64_t n) { out.push_back(fmt::format("{}={}", name, n)); };
  add("model.tensor_model_parallel_size", p.tp);
  add("model.pipeline_model_parallel_size", p.pp);
  if (p.vp > 1) add("model.virtual_pipeline_model_parallel_size", p.vp);
  add("model.context_parallel_size", p.cp);
  if (has_routed_experts(s.model)) {
    add("model.expert_model_parallel_size", p.ep);
    add("model.expert_tensor_parallel_size", p.etp);
  }
  out.push_back(fmt::format("model.sequence_parallel={}", p.tp > 1 && p.sequence_parallel));
  if (w.split.first > 0) add("model.num_layers_in_first_pipeline_stage", w.split.first);
  if (w.split.last > 0) add("model.num_layers_in_last_pipeline_stage", w.split.last);
  add("model.seq_length", w.seq_length);
  add("train.global_batch_size", w.global_batch_size);
  add("train.micro_batch_size", w.micro_batch_size);
  out.push_back(fmt::format("mixed_precision={}", recipe_of(w.gemm_precision)));
  out.push_back(fmt::format("ddp.use_distributed_optimizer={}", w.sharding != data_parallel_sharding::replicated));
  if (w.sharding == data_parallel_sharding::fsdp) out.emplace_back("ddp.use_megatron_fsdp=true");
  add_recompute(w.recompute, out);
  if (w.offload_layers > 0) {
    out.emplace_back("model.cpu_offloading=true");
    add("model.cpu_offloading_num_layers", w.offload_layers);
  }
  if (splits_backward(w.schedule))
    out.emplace_back("# the schedule splits the backward pass, which Megatron-Core has no switch for");
  return out;
}

}  // namespace nvlsim
