#include "nvlsim/training/idle_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "training/encoder.hpp"

namespace nvlsim {

std::vector<std::string> unpriced_work(const model& m, const training_workload& w) {
  std::vector<std::string> out;
  const bool sees = image_encoder_of(m, w).has_value();
  if (sees && m.towers.size() == 1)
    out.push_back(
        fmt::format("no band: no published step with the encoder of images of {} says how many a sample has; mfu "
                    "and FLOPs count the language model alone",
                    m.name));
  else if (tower_parameters(m) > 0)
    out.push_back(
        fmt::format("no band: the step is that of the language model{}; time and activations of {} of {} are not "
                    "counted (weights{} are)",
                    sees ? " and the encoder of images" : "", sees ? "other towers" : "the towers", m.name,
                    trains_towers(w) ? ", gradients and optimizer states" : ""));
  if (w.deterministic)
    out.emplace_back(
        "no band: what deterministic kernels and collectives cost is not known and not counted; the two published "
        "steps with them (GLM-5.2, not tuned) take 4.3 and 4.5 times as long as simulated");
  if (w.freeze_language && w.task != training_task::lora)
    out.emplace_back("no band: no step with freeze_language_model is published");
  return out;
}

bool has_norm_kernels(const model& m) {
  return std::any_of(m.layers.begin(), m.layers.end(), [](const layer_spec& l) {
    return l.routed() || l.attention == attention_kind::mla || l.attention == attention_kind::compressed;
  });
}

std::vector<std::string> idle_settings(const model& m, const training_workload& w) {
  const auto some_layer = [&](auto has) { return std::any_of(m.layers.begin(), m.layers.end(), has); };
  const bool routed = has_routed_experts(m);
  const bool latent = some_layer([](const layer_spec& l) { return l.attention == attention_kind::mla; });
  const bool dense = some_layer([](const layer_spec& l) { return !l.routed() && l.ffn_hidden > 0; });
  std::vector<std::string> names, out;
  const auto idle = [&](const char* name, bool set, bool has) {
    if (set && !has) names.emplace_back(name);
  };
  idle("recompute layernorm (of norms in kernels of their own)", w.recompute.layernorm, has_norm_kernels(m));
  idle("recompute moe", w.recompute.moe, routed);
  idle("recompute mlp", w.recompute.mlp, dense);
  idle("recompute mla_up_proj", w.recompute.mla_up_proj, latent);
  idle("recompute shared_experts", w.recompute.shared_experts,
       some_layer([](const layer_spec& l) { return l.moe.shared_ffn > 0; }));
  idle("recompute mhc", w.recompute.hyper_connections, m.residual_streams > 1);
  idle("offload_modules expert_fc1", w.offload.expert_fc1, routed);
  idle("images", w.images.has_value(), image_encoder_of(m, w).has_value());
  idle("freeze_vision_model", w.freeze_towers, tower_parameters(m) > 0);
  idle("overlap_moe_expert_parallel_comm", w.moe_overlap, routed);
  idle("fused_expert_mlp", w.fused_expert_mlp, routed);
  idle("moe_router_fusion", w.router_fusion.has_value(), routed);
  idle("moe_token_drop", w.token_drop, routed);
  idle("moe_load_imbalance", w.expert_imbalance > 1, routed);
  idle("moe_router_force_load_balancing", !w.forced_balance, routed);
  idle("etp", w.par.etp > 1 && w.par.etp != w.par.tp, routed);
  if (!names.empty())
    out.push_back(fmt::format("no effect, because {} has no such layers: {}", m.name, fmt::join(names, ", ")));
  if (w.moe_overlap && routed && w.par.ep == 1)
    out.emplace_back("no effect, because ep is 1 and experts exchange nothing: overlap_moe_expert_parallel_comm");
  const auto layers = static_cast<std::int64_t>(m.layers.size());
  const std::int64_t each = w.split.given() ? layers : (layers + w.par.pp - 1) / w.par.pp;
  if (w.offload_layers > each)
    out.push_back(fmt::format("offload_layers {} exceeds the {} layers of a GPU; all of them are offloaded",
                              w.offload_layers, each));
  if (w.task == training_task::lora && w.lora.rank == 0)
    out.emplace_back(
        "no lora_rank: adapters count as 0.2 % of the parameters and take no time; with a rank their kernels and "
        "launches are counted");
  return out;
}

}  // namespace nvlsim
