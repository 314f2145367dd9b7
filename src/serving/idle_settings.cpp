#include "nvlsim/serving/idle_settings.hpp"

#include <fmt/format.h>

namespace nvlsim {

std::vector<std::string> idle_settings(const stack& s, const model& m, const inference_workload& w) {
  std::vector<std::string> out;
  const auto idle = [&](bool is, const char* name, const char* why) {
    if (is) out.push_back(fmt::format("{} has no effect: {}", name, why));
  };
  const engine_settings set = settings_of(*s.inference, w);
  const engine_overrides& given = w.engine;
  idle(given.batch_wait_iterations && set.batch_wait_iterations > 0 && set.batch_wait_ratio <= 0,
       "batch_wait_iterations", "batch_wait_ratio is 0, so prompts do not wait for each other");
  idle(given.batch_wait_ratio && set.batch_wait_ratio > 0 && set.batch_wait_iterations == 0, "batch_wait_ratio",
       "batch_wait_iterations is 0, so prompts do not wait for each other");
  const bool ranks = w.attention_dp > 1 || (w.prefill_pool && w.prefill_pool->attention_dp > 1);
  idle(given.rank_wait_iterations && set.rank_wait_iterations > 0 && !ranks, "rank_wait_iterations",
       "attention_dp is 1, so there are no other ranks to wait for");
  idle(w.expert_weights && *w.expert_weights != w.weights && !has_routed_experts(m), "expert_weights",
       "the model has no experts");
  const bool shared = w.sessions || (w.replay && !w.replay->list.prefixes.empty());
  idle(given.prefix_cache && set.prefix_cache && !shared, "prefix_cache", "the load has no shared prefixes");
  idle(w.router != router_policy::round_robin && w.replicas * w.pp == 1, "router", "there is only one worker");
  return out;
}

}  // namespace nvlsim
