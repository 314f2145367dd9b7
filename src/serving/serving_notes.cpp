#include "nvlsim/serving/serving_notes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/pools.hpp"
#include "nvlsim/serving/routes.hpp"
#include "serving/load_shares.hpp"

namespace nvlsim {
namespace {

std::string arrivals_note(const inference_workload& w) {
  const arrival_settings& a = w.arrivals;
  const char* what = w.sessions ? "sessions" : "requests";
  if (w.load == load_kind::open_loop || (w.load == load_kind::trace && !w.replay->timed)) {
    if (a.process == arrival_process::fixed)
      return fmt::format("{} arrive at equal intervals, {:.6g} per second", what, a.rate_per_s);
    if (a.process == arrival_process::poisson)
      return fmt::format("{} arrive as a Poisson process, {:.6g} per second", what, a.rate_per_s);
    return fmt::format("{} arrive with gamma-distributed gaps, coefficient of variation {:.4g}, {:.6g} per second",
                       what, a.variation, a.rate_per_s);
  }
  if (w.load == load_kind::trace)
    return fmt::format("requests arrive at the times of the trace ({})", w.replay->format);
  if (w.load == load_kind::closed_loop)
    return fmt::format("{} clients start together and send their next {} when the last one ends", w.concurrency,
                       w.sessions ? "session" : "request");
  return "all requests arrive at the start";
}

void trace_notes(const inference_workload& w, std::vector<std::string>& out) {
  if (w.load != load_kind::trace) return;
  const request_trace& t = *w.replay;
  if (t.empty_outputs > 0)
    out.push_back(
        fmt::format("{} requests of the trace have no output tokens; one is simulated for each", t.empty_outputs));
  if (t.timed && w.tick_s == 0 && 2 * t.shared_arrivals > static_cast<std::int64_t>(t.list.requests.size()))
    out.emplace_back(
        "most requests of the trace share their arrival time with others: times are rounded, so requests arrive "
        "in bursts; use load/tick to spread them");
  if (w.rate_scale != 1)
    out.push_back(fmt::format("requests arrive {:.6g} times as fast as in the trace", w.rate_scale));
}

void dealt_notes(const inference_workload& w, std::vector<std::string>& out) {
  if (!dealt(w)) return;
  if (w.replicas > 1)
    out.emplace_back(
        "all replicas get the same request lengths; replicas with equally many requests form one class");
  if (w.input.spread == 0 && w.output.spread == 0)
    out.emplace_back("all requests have the same length, so they start and end in lockstep, unlike real ones");
}

/// "the prefill worker (of 10) with the fewest unfinished requests"; a single one is "the prefill worker".
std::string to_worker(router_policy how, std::int64_t workers, const char* kind) {
  if (workers == 1) return fmt::format("the {} worker", kind);
  constexpr const char* by[] = {"the {1} {0} workers in turn",
                                "the {} worker (of {}) with the fewest unfinished requests",
                                "the {} worker (of {}) with the fewest tokens to compute and hold"};
  return fmt::format(fmt::runtime(by[static_cast<int>(how)]), kind, workers);
}

}  // namespace

std::vector<std::string> serving_notes(const serving_case& c, std::int64_t workers) {
  const auto& [p, s, m, w] = c;
  std::vector<std::string> out = {arrivals_note(w)};
  dealt_notes(w, out);
  const std::int64_t busy = w.load == load_kind::closed_loop ? std::min(w.requests, w.concurrency) : w.requests;
  if (w.load != load_kind::trace && !w.sessions && busy < workers)
    out.push_back(fmt::format("{} of {} workers (replicas x pp) have no requests", workers - busy, workers));
  trace_notes(w, out);
  if (w.mlperf)
    out.push_back(
        fmt::format("MLPerf's rules ({}): {} requests, {}, every request counts", w.mlperf->benchmark, w.requests,
                    w.mlperf->scenario == mlperf_scenario::offline ? "a run of ten minutes or more"
                                                                   : "arrivals for ten minutes in the mean"));
  if (w.measured.warmup > 0 || w.measured.tail > 0)
    out.push_back(
        fmt::format("the first {:.4g} % and the last {:.4g} % of the arriving requests are not counted; rates "
                    "cover the time between the first and the last end of a counted request",
                    100 * w.measured.warmup, 100 * w.measured.tail));
  const engine_settings set = settings_of(*s.inference, w);
  out.push_back(set.preemption == preemption_policy::none
                    ? "admission reserves cache for the prompt and the whole output of each request until its end"
                    : fmt::format("when the cache is full, the request admitted last {}",
                                  set.preemption == preemption_policy::recompute
                                      ? "gives its part up and computes it again later"
                                      : "moves its part to CPU memory and back"));
  if (w.pp > 1)
    out.push_back(
        fmt::format("a pipeline of {0} stages has {0} micro-batches in flight, each scheduled separately", w.pp));
  if (w.prefill_pool) {
    const std::int64_t prefilling = std::int64_t{w.prefill_pool->replicas} * w.prefill_pool->pp;
    const std::string prefill =
        w.pool_router ? to_worker(*w.pool_router, prefilling, "prefill")
        : prefilling == 1
            ? "the prefill worker"
            : fmt::format("the prefill worker (of {}) with the fewest tokens left to compute", prefilling);
    out.push_back(fmt::format("each prompt goes to {}; its KV cache to {}", prefill,
                              to_worker(w.pool_router.value_or(router_policy::least_loaded), workers, "decode")));
    out.emplace_back("the first token is streamed when the decode worker starts on the request");
  } else if (w.prompts_cached) {
    out.emplace_back(w.load == load_kind::closed_loop
                         ? "decode workers only: requests arrive with the KV cache of their prompt, and the first "
                           "ones with parts of their outputs"
                         : "decode workers only: requests arrive with the KV cache of their prompt");
  } else if (workers > 1 && !dealt(w)) {
    constexpr const char* how[] = {
        "requests go to {} workers in turn",
        "each request goes to the worker (of {}) with the fewest unfinished requests",
        "each request goes to the worker (of {}) with the fewest tokens to compute and hold"};
    out.push_back(fmt::format(fmt::runtime(how[static_cast<int>(w.router)]), workers));
  }
  if (!s.inference->sustained_factor.contains(p.gpu.name))
    out.push_back(
        fmt::format("the sustained rate of {} is unknown; the rate in a short benchmark is used", p.gpu.name));
  if (!costs_for(s, p.gpu, m).gemm_factor.contains(w.weights))
    out.push_back(fmt::format("there is no engine factor for {} GEMMs; the rates of the kernel tables are used",
                              name(w.weights)));
  return out;
}

namespace {

/// Engines with the same settings.
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
                   merged(merged(engine.settings, w.prefill_pool->usual), w.prefill_pool->engine),
                   {w.prefill_pool->attention_dp, false, shared},
                   engine_place::prefill_pool});
  return out;
}

/// Why a setting of the scenario has no effect on any engine that it is given for; empty if it has one.
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
  const bool alone =
      w.replicas * w.pp == 1 && (!w.prefill_pool || w.prefill_pool->replicas * w.prefill_pool->pp == 1);
  if ((w.router != router_policy::round_robin || w.pool_router) && alone)
    idle("router", w.prefill_pool ? "there is only one worker of a kind" : "there is only one worker");
  return out;
}

}  // namespace nvlsim
