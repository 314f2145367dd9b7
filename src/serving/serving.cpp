#include "nvlsim/serving/serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "nvlsim/serving/iteration_prices.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/pooled_plan.hpp"

namespace nvlsim {
namespace {

/// Reasons due to single requests.
std::vector<std::string> request_reasons(const model& m, const inference_workload& w,
                                         const schedule_limits& limits, const request_list& list) {
  std::int64_t longest = 0, longest_prompt = 0, beyond_model = 0, beyond_cache = 0;
  for (const served_request& r : list.requests) {
    const std::int64_t tokens = r.input + r.output;
    longest = std::max(longest, tokens);
    longest_prompt = std::max(longest_prompt, r.input);
    beyond_model += m.max_positions > 0 && tokens > m.max_positions ? 1 : 0;
    beyond_cache += held_tokens(limits, tokens) > max_request_tokens(limits) ? 1 : 0;
  }
  std::vector<std::string> out;
  const std::size_t n = list.requests.size();
  if (beyond_model > 0)
    out.push_back(fmt::format("{} of {} requests exceed the {} tokens that {} takes; the longest has {}",
                              beyond_model, n, m.max_positions, m.name, longest));
  if (beyond_cache > 0)
    out.push_back(fmt::format("{} of {} requests exceed the {} KV tokens of the cache{}; the longest needs {}",
                              beyond_cache, n, max_request_tokens(limits), limits.ranks > 1 ? " of a rank" : "",
                              held_tokens(limits, longest)));
  if (!w.pooled() && limits.settings.prefill == prefill_policy::whole_prompt &&
      longest_prompt > limits.settings.max_num_tokens / limits.ranks)
    out.push_back(
        fmt::format("prefill whole_prompt: a prompt of {} tokens exceeds max_num_tokens {}; use prefill chunked",
                    longest_prompt, limits.settings.max_num_tokens / limits.ranks));
  refuse_many(out, static_cast<std::int64_t>(n));
  if (n == 0) out.emplace_back("the load has no requests");
  return out;
}

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

std::vector<std::string> assumptions(const platform& p, const stack& s, const inference_workload& w,
                                     std::int64_t workers) {
  std::vector<std::string> out = {arrivals_note(w)};
  trace_notes(w, out);
  if (w.measured.warmup > 0 || w.measured.tail > 0)
    out.push_back(
        fmt::format("the first {:.4g} % and the last {:.4g} % of the arriving requests are not counted; rates "
                    "cover the time between the first and the last end of a counted request",
                    100 * w.measured.warmup, 100 * w.measured.tail));
  const engine_settings set = settings_of(*s.inference, w);
  if (set.preemption == preemption_policy::none)
    out.push_back(fmt::format(
        "admission reserves cache for the prompt and {:.0f} % of the output of each request until its end",
        100 * set.kv_reserve));
  if (w.pp > 1)
    out.push_back(
        fmt::format("a pipeline of {0} stages has {0} micro-batches in flight, each scheduled separately", w.pp));
  if (w.prefill_pool) {
    out.push_back(
        fmt::format("prompts go to the one of {} prefill workers with the fewest tokens to compute, KV caches to "
                    "the one of {} decode workers with the fewest unfinished requests",
                    w.prefill_pool->replicas * w.prefill_pool->pp, workers));
    out.emplace_back("the first token is streamed when the decode worker starts on the request");
  } else if (w.prompts_cached) {
    out.emplace_back("decode workers only: requests arrive with the KV cache of their prompt");
  } else if (w.tp * w.attention_dp > 0 && workers > 1) {
    constexpr const char* how[] = {"in turn", "to the one with the fewest unfinished requests",
                                   "to the one with the fewest tokens to compute and hold"};
    out.push_back(fmt::format("requests go to {} workers {}", workers, how[static_cast<int>(w.router)]));
  }
  if (!s.inference->sustained_factor.contains(p.gpu.name))
    out.push_back(
        fmt::format("the sustained rate of {} is unknown; the rate in a short benchmark is used", p.gpu.name));
  return out;
}

}  // namespace

bool needs_clock(const stack& s, const inference_workload& w) {
  const auto by_itself = [](const token_lengths& l) { return l.shape != length_shape::uniform; };
  const double tokens = static_cast<double>(w.requests) * w.output.mean;
  const bool long_loop = w.load == load_kind::closed_loop &&
                         tokens > static_cast<double>(max_iterations) * static_cast<double>(w.concurrency);
  return w.load == load_kind::open_loop || w.load == load_kind::trace || w.sessions || w.objective.any() ||
         long_loop || w.router != router_policy::round_robin ||
         (s.inference && settings_of(*s.inference, w).preemption != preemption_policy::none) ||
         w.measured.warmup > 0 || w.measured.tail > 0 || by_itself(w.input) || by_itself(w.output);
}

namespace {

/// The prefill pool.
struct prefill_side {
  const platform& hardware;
  const stack& software;
  const model& net;
  const inference_workload& all;
  inference_workload workload;
  iteration_costs costs;
  iteration_prices prices;
  std::unordered_map<std::int64_t, double> transfers = {};  ///< seconds by tokens

  prefill_side(const platform& p, const stack& s, const model& m, const inference_workload& w)
      : hardware(p), software(s), net(m), all(w), workload(prefill_workload(w)), costs(p, s, m, workload),
        prices(costs, 1) {}

  double transfer(std::int64_t tokens) {
    const auto [at, is_new] = transfers.try_emplace(tokens);
    if (is_new) at->second = kv_transfer(hardware, software, net, all, static_cast<double>(tokens)).time.base();
    return at->second;
  }
};

/// Appends the iteration classes of prefill workers and renumbers their traced iterations.
void add_uses(serving_run& run, std::vector<iteration_use> more, int gpus) {
  const auto before = static_cast<std::int32_t>(run.uses.size());
  for (iteration_use& u : more) {
    u.gpus = gpus;
    run.uses.push_back(std::move(u));
  }
  for (worker_record& l : run.outcome.workers)
    if (l.prefills)
      for (traced_iteration& t : l.iterations) t.kind += before;
}

}  // namespace

serving_run serve(const platform& p, const stack& s, const model& m, const inference_workload& w,
                  const serving_options& options) {
  serving_run run;
  run.reasons = serving_problems(p, s, m, w);
  if (!s.inference) return run;
  const inference_workload decodes = decode_workload(w);
  serving_memory memory = plan_serving_memory(p, s, m, decodes);
  run.memory = memory.report;
  if (w.pooled()) run.memory.where = "each decode GPU";
  run.kv_capacity_tokens = memory.kv_capacity_tokens =
      options.kv_capacity_tokens.value_or(memory.kv_capacity_tokens);
  if (run.kv_capacity_tokens == 0 && kv_bytes_per_token(m, w.kv_cache) > 0) run.reasons.push_back(memory.no_cache);
  if (w.load != load_kind::trace) refuse_many(run.reasons, w.requests);
  if (!run.reasons.empty()) return run;

  const request_list list = generate_requests(w, m.max_positions);
  server_settings set;
  set.worker = limits_of(*s.inference, decodes, memory);
  set.worker.prefix_tokens = list.prefix_tokens;
  set.workers = std::int64_t{w.replicas} * w.pp;
  set.router = w.router;
  set.keep_iterations = options.explained;
  set.clients = w.load == load_kind::closed_loop ? w.concurrency : 0;
  set.prompts_cached = w.prompts_cached;
  run.reasons = request_reasons(m, w, set.worker, list);
  std::optional<prefill_side> prefill;
  if (w.prefill_pool && run.reasons.empty()) {
    prefill.emplace(p, s, m, w);
    serving_memory prompts = plan_serving_memory(p, s, m, prefill->workload);
    if (options.kv_capacity_tokens) prompts.kv_capacity_tokens = *options.kv_capacity_tokens;
    set.prefill = {of_prompts_alone(limits_of(*s.inference, prefill->workload, prompts)),
                   std::int64_t{prefill->workload.replicas} * prefill->workload.pp,
                   [&](const iteration& it) { return prefill->prices.price(it); },
                   [&](std::int64_t tokens) { return prefill->transfer(tokens); }};
    schedule_limits& l = set.prefill->worker;
    l.prefix_tokens = list.prefix_tokens;
    std::int64_t longest = 0;
    for (const served_request& r : list.requests) longest = std::max(longest, r.input);
    if (held_tokens(l, longest + 1) > max_request_tokens(l))
      run.reasons.push_back(fmt::format("prefill pool: the longest prompt needs {} KV tokens; the cache holds {}",
                                        longest, max_request_tokens(l)));
  }
  const bandwidth c2c = p.gpu.c2c;
  const double swap_rate = (c2c / memory.kv_per_token).base() * w.attention_dp;
  if (set.worker.settings.preemption == preemption_policy::swap) {
    set.worker.swap_capacity_tokens =
        static_cast<std::int64_t>(cpu_room(p) / memory.kv_per_token * w.attention_dp / w.pp);
    if (!(swap_rate > 0))
      run.reasons.push_back(
          fmt::format("preemption swap: {} has no bandwidth between GPU and CPU (gpu/c2c)", p.name));
  }
  if (!run.reasons.empty()) return run;
  run.notes = assumptions(p, s, w, set.workers);
  if (!w.pooled()) {
    std::int64_t longest = 0;
    for (const served_request& r : list.requests) longest = std::max(longest, r.input);
    const std::int64_t all = set.clients > 0 ? set.clients : static_cast<std::int64_t>(list.requests.size());
    if (std::string held_up = prompts_held_up(set.worker, longest, (all + set.workers - 1) / set.workers);
        !held_up.empty())
      run.notes.push_back(std::move(held_up));
  }
  if (behind_server(w)) run.front_end = s.inference->front_end;
  iteration_costs costs(p, s, m, decodes);
  iteration_prices prices(costs, swap_rate);
  run.outcome = serve_requests(list, set, [&](const iteration& it) { return prices.price(it); });
  run.uses = prices.uses(options.explained);
  for (iteration_use& u : run.uses) u.gpus = w.tp * w.attention_dp;
  if (prefill)
    add_uses(run, prefill->prices.uses(options.explained), prefill->workload.tp * prefill->workload.attention_dp);
  return run;
}

}  // namespace nvlsim
