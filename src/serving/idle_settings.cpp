#include "nvlsim/serving/idle_settings.hpp"

#include <fmt/format.h>

#include "nvlsim/serving/pools.hpp"

namespace nvlsim {
namespace {

/// Engines of a load that are set alike.
struct engine_scope {
  const engine_overrides& given;
  engine_settings set;
  engine_use use;
  engine_place place;
};

std::vector<engine_scope> scopes_of(const inference_profile& engine, const inference_workload& w) {
  const bool shared = w.sessions || (w.replay && !w.replay->list.prefixes.empty());
  std::vector<engine_scope> out;
  out.push_back({w.engine,
                 settings_of(engine, w),
                 {w.attention_dp, w.pooled(), shared},
                 w.pooled() ? engine_place::decode_pool : engine_place::engine});
  if (w.prefill_pool)
    out.push_back({w.prefill_pool->engine,
                   merged(engine.settings, w.prefill_pool->engine),
                   {w.prefill_pool->attention_dp, false, shared},
                   engine_place::prefill_pool});
  return out;
}

/// Why a setting that the scenario gives acts on none of the engines that it is given for; else empty.
std::string_view reason_to_idle(const engine_field& f, const std::vector<engine_scope>& scopes) {
  std::string_view first;
  for (const engine_scope& s : scopes) {
    const bool given = std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.said; }) return (s.given.*m.said).has_value();
          else return false;
        },
        f.member);
    if (!given) continue;
    std::string_view why = f.idle ? f.idle(s.set, s.use) : std::string_view();
    if (why.empty()) why = f.refused_in(s.place);
    if (why.empty()) return {};
    if (first.empty()) first = why;
  }
  return first;
}

}  // namespace

std::vector<std::string> idle_settings(const stack& s, const model& m, const inference_workload& w) {
  std::vector<std::string> out;
  const auto idle = [&](std::string_view name, std::string_view why) {
    if (!why.empty()) out.push_back(fmt::format("{} has no effect: {}", name, why));
  };
  const std::vector<engine_scope> scopes = scopes_of(*s.inference, w);
  for (const engine_field& f : engine_fields) idle(f.name, reason_to_idle(f, scopes));
  if (w.expert_weights && *w.expert_weights != w.weights && !has_routed_experts(m))
    idle("expert_weights", "the model has no experts");
  if (!w.tiers.empty() && !settings_of(*s.inference, w.prefill_pool ? prefill_workload(w) : w).prefix_cache)
    idle("cache_tiers", "prefix_cache is false");
  if (w.router != router_policy::round_robin && w.replicas * w.pp == 1) idle("router", "there is only one worker");
  return out;
}

}  // namespace nvlsim
