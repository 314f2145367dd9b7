#include "workload/idle_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nvlsim {

std::vector<std::string> idle_settings(const model& m, const training_workload& w) {
  const auto some_layer = [&](auto has) { return std::any_of(m.layers.begin(), m.layers.end(), has); };
  const bool routed = has_routed_experts(m);
  const bool latent = some_layer([](const layer_spec& l) { return l.attention == attention_kind::mla; });
  const bool dense = some_layer([](const layer_spec& l) { return !l.routed() && l.ffn_hidden > 0; });
  std::vector<std::string> names, out;
  const auto idle = [&](const char* name, bool set, bool has) {
    if (set && !has) names.emplace_back(name);
  };
  idle("recompute moe", w.recompute.moe, routed);
  idle("recompute mlp", w.recompute.mlp, dense);
  idle("recompute mla_up_proj", w.recompute.mla_up_proj, latent);
  idle("overlap_moe_expert_parallel_comm", w.moe_overlap, routed);
  idle("fused_expert_mlp", w.fused_expert_mlp, routed);
  idle("moe_token_drop", w.token_drop, routed);
  idle("moe_load_imbalance", w.expert_imbalance > 1, routed);
  idle("etp", w.par.etp > 1 && w.par.etp != w.par.tp, routed);
  if (!names.empty()) out.push_back(fmt::format("without effect, as {} has no such layers: {}", m.name, fmt::join(names, ", ")));
  const auto layers = static_cast<std::int64_t>(m.layers.size());
  const std::int64_t each = w.split.given() ? layers : (layers + w.par.pp - 1) / w.par.pp;
  if (w.offload_layers > each)
    out.push_back(fmt::format("offload_layers {}: a GPU has {} layers at most, and all of them are offloaded", w.offload_layers, each));
  return out;
}

std::vector<std::string> idle_settings(const stack& s, const model& m, const inference_workload& w) {
  std::vector<std::string> out;
  const auto idle = [&](bool is, const char* name, const char* why) {
    if (is) out.push_back(fmt::format("{} is without effect: {}", name, why));
  };
  const engine_settings set = settings_of(*s.inference, w);
  const engine_overrides& given = w.engine;
  idle(given.batch_wait_iterations && set.batch_wait_iterations > 0 && set.batch_wait_ratio <= 0, "batch_wait_iterations",
       "batch_wait_ratio is 0, so that no prompt waits for others");
  idle(given.batch_wait_ratio && set.batch_wait_ratio > 0 && set.batch_wait_iterations == 0, "batch_wait_ratio",
       "batch_wait_iterations is 0, so that no prompt waits for others");
  const bool ranks = w.attention_dp > 1 || (w.prefill_pool && w.prefill_pool->attention_dp > 1);
  idle(given.rank_wait_iterations && set.rank_wait_iterations > 0 && !ranks, "rank_wait_iterations",
       "attention_dp is 1, so that no rank waits for others");
  idle(w.expert_weights && *w.expert_weights != w.weights && !has_routed_experts(m), "expert_weights", "the model has no experts");
  const bool shared = w.sessions || (w.replay && !w.replay->list.prefixes.empty());
  idle(given.prefix_cache && set.prefix_cache && !shared, "prefix_cache", "the load does not say what prompts share");
  idle(w.router != router_policy::round_robin && w.replicas * w.pp == 1, "router", "there is one lane");
  return out;
}

}  // namespace nvlsim
