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

/// Reasons that concern requests by themselves.
std::vector<std::string> request_reasons(const model& m, const inference_workload& w,
                                         const schedule_limits& limits, const request_list& list) {
  std::int64_t longest = 0, longest_prompt = 0, beyond_model = 0, beyond_cache = 0;
  for (const served_request& r : list.requests) {
    const std::int64_t tokens = r.input + r.output;
    longest = std::max(longest, tokens);
    longest_prompt = std::max(longest_prompt, r.input);
    beyond_model += m.max_positions > 0 && tokens > m.max_positions ? 1 : 0;
    beyond_cache += held_tokens(limits, tokens) > most_of_one(limits) ? 1 : 0;
  }
  std::vector<std::string> out;
  const std::size_t n = list.requests.size();
  if (beyond_model > 0)
    out.push_back(fmt::format("{} of {} requests are longer than the {} tokens that {} takes; the longest has {}",
                              beyond_model, n, m.max_positions, m.name, longest));
  if (beyond_cache > 0)
    out.push_back(fmt::format("{} of {} requests do not fit the {} KV tokens of the cache{}; the longest needs {}",
                              beyond_cache, n, most_of_one(limits), limits.ranks > 1 ? " of a rank" : "",
                              held_tokens(limits, longest)));
  if (!w.pooled() && limits.settings.prefill == prefill_policy::whole_prompt &&
      longest_prompt > limits.settings.max_num_tokens / limits.ranks)
    out.push_back(fmt::format(
        "prefill whole_prompt: a prompt of {} tokens exceeds max_num_tokens {}; prefill chunked cuts it",
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
      return fmt::format("{} arrive at even times, {:.6g} a second", what, a.rate_per_s);
    if (a.process == arrival_process::poisson)
      return fmt::format("{} arrive at random, {:.6g} a second", what, a.rate_per_s);
    return fmt::format("{} arrive with gaps of a gamma distribution of variation {:.4g}, {:.6g} a second", what,
                       a.variation, a.rate_per_s);
  }
  if (w.load == load_kind::trace) return fmt::format("requests arrive as the trace ({}) says", w.replay->format);
  if (w.load == load_kind::closed_loop)
    return fmt::format("{} clients start together and send their next {} when the last one ends", w.concurrency,
                       w.sessions ? "session" : "request");
  return "all requests are there at the start";
}

void trace_notes(const inference_workload& w, std::vector<std::string>& out) {
  if (w.load != load_kind::trace) return;
  const request_trace& t = *w.replay;
  if (t.empty_outputs > 0)
    out.push_back(fmt::format("{} requests of the trace have no output token: one is taken", t.empty_outputs));
  if (t.timed && w.tick_s == 0 && 2 * t.shared_arrivals > static_cast<std::int64_t>(t.list.requests.size()))
    out.emplace_back(
        "most requests of the trace share their arrival with others: times are rounded, and come in bursts; "
        "load/tick spreads them");
  if (w.rate_scale != 1)
    out.push_back(fmt::format("arrivals come {:.6g} times as fast as in the trace", w.rate_scale));
}

std::vector<std::string> assumptions(const platform& p, const stack& s, const inference_workload& w,
                                     std::int64_t lanes) {
  std::vector<std::string> out = {arrivals_note(w)};
  trace_notes(w, out);
  if (w.measured.warmup > 0 || w.measured.tail > 0)
    out.push_back(
        fmt::format("the first {:.4g} % and the last {:.4g} % of the requests to arrive are not counted; rates "
                    "are of what ends between the first and the last end that is",
                    100 * w.measured.warmup, 100 * w.measured.tail));
  const engine_settings set = settings_of(*s.inference, w);
  if (set.preemption == preemption_policy::none)
    out.push_back(
        fmt::format("admission asks the cache for the prompt and {:.0f} % of each request's own output, and "
                    "holds it to the end",
                    100 * set.kv_reserve));
  if (w.pp > 1)
    out.push_back(
        fmt::format("a pipeline of {0} stages works on {0} micro-batches in turn, each a lane of its own", w.pp));
  if (w.prefill_pool) {
    out.push_back(fmt::format(
        "prompts go to the one of {} prefill lanes with the least to compute, their caches to the one of {} "
        "decode lanes with the fewest requests in hand",
        w.prefill_pool->replicas * w.prefill_pool->pp, lanes));
    out.emplace_back("the first token is streamed when the decode worker has the cache and begins");
  } else if (w.prompts_cached) {
    out.emplace_back("decode workers alone: caches of prompts are there when a request arrives");
  } else if (w.tp * w.attention_dp > 0 && lanes > 1) {
    constexpr const char* how[] = {"in turn", "to the one with the fewest requests in hand",
                                   "to the one with the least to compute and hold"};
    out.push_back(fmt::format("requests go to {} lanes {}", lanes, how[static_cast<int>(w.router)]));
  }
  if (!s.inference->sustained_factor.contains(p.gpu.name))
    out.push_back(
        fmt::format("the sustained rate of {} is not known: that of a short benchmark is taken", p.gpu.name));
  return out;
}

}  // namespace

bool needs_clock(const stack& s, const inference_workload& w) {
  const auto by_itself = [](const token_lengths& l) { return l.shape != length_shape::uniform; };
  const double tokens = static_cast<double>(w.requests) * w.output.mean;
  const bool long_loop = w.load == load_kind::closed_loop &&
                         tokens > static_cast<double>(most_iterations) * static_cast<double>(w.concurrency);
  return w.load == load_kind::open_loop || w.load == load_kind::trace || w.sessions || w.objective.any() ||
         long_loop || w.router != router_policy::round_robin ||
         (s.inference && settings_of(*s.inference, w).preemption != preemption_policy::none) ||
         w.measured.warmup > 0 || w.measured.tail > 0 || by_itself(w.input) || by_itself(w.output);
}

namespace {

/// The prefill workers of a load in pools.
struct prefill_side {
  const platform& hardware;
  const stack& software;
  const model& net;
  const inference_workload& all;
  inference_workload work;
  iteration_costs costs;
  iteration_prices prices;
  std::unordered_map<std::int64_t, double> transfers = {};  ///< by tokens

  prefill_side(const platform& p, const stack& s, const model& m, const inference_workload& w)
      : hardware(p), software(s), net(m), all(w), work(prefill_workload(w)), costs(p, s, m, work),
        prices(costs, 1) {}

  double transfer(std::int64_t tokens) {
    const auto [at, is_new] = transfers.try_emplace(tokens);
    if (is_new) at->second = kv_transfer(hardware, software, net, all, static_cast<double>(tokens)).time.base();
    return at->second;
  }
};

/// Appends the uses of prefill lanes, whose traced iterations get their numbers.
void add_uses(serving_run& run, std::vector<iteration_use> more, int gpus) {
  const auto before = static_cast<std::int32_t>(run.uses.size());
  for (iteration_use& u : more) {
    u.gpus = gpus;
    run.uses.push_back(std::move(u));
  }
  for (lane_record& l : run.outcome.lanes)
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
  if (w.pooled()) run.memory.where = "each GPU that decodes";
  run.kv_capacity_tokens = memory.kv_capacity_tokens =
      options.kv_capacity_tokens.value_or(memory.kv_capacity_tokens);
  if (run.kv_capacity_tokens == 0 && kv_bytes_per_token(m, w.kv_cache) > 0) run.reasons.push_back(memory.no_cache);
  if (w.load != load_kind::trace) refuse_many(run.reasons, w.requests);
  if (!run.reasons.empty()) return run;

  const request_list list = generate_requests(w, m.max_positions);
  server_settings set;
  set.lane = limits_of(*s.inference, decodes, memory);
  set.lane.prefix_tokens = list.prefix_tokens;
  set.lanes = std::int64_t{w.replicas} * w.pp;
  set.router = w.router;
  set.keep_iterations = options.explained;
  set.clients = w.load == load_kind::closed_loop ? w.concurrency : 0;
  set.prompts_cached = w.prompts_cached;
  run.reasons = request_reasons(m, w, set.lane, list);
  std::optional<prefill_side> prefill;
  if (w.prefill_pool && run.reasons.empty()) {
    prefill.emplace(p, s, m, w);
    serving_memory prompts = plan_serving_memory(p, s, m, prefill->work);
    if (options.kv_capacity_tokens) prompts.kv_capacity_tokens = *options.kv_capacity_tokens;
    set.prefill = {of_prompts_alone(limits_of(*s.inference, prefill->work, prompts)),
                   std::int64_t{prefill->work.replicas} * prefill->work.pp,
                   [&](const iteration& it) { return prefill->prices.price(it); },
                   [&](std::int64_t tokens) { return prefill->transfer(tokens); }};
    schedule_limits& l = set.prefill->lane;
    l.prefix_tokens = list.prefix_tokens;
    std::int64_t longest = 0;
    for (const served_request& r : list.requests) longest = std::max(longest, r.input);
    if (held_tokens(l, longest + 1) > most_of_one(l))
      run.reasons.push_back(fmt::format("prefill pool: the longest prompt needs {} KV tokens, the cache holds {}",
                                        longest, most_of_one(l)));
  }
  const bandwidth c2c = p.gpu.c2c;
  const double swap_rate = (c2c / memory.kv_per_token).base() * w.attention_dp;
  if (set.lane.settings.preemption == preemption_policy::swap) {
    set.lane.swap_capacity_tokens =
        static_cast<std::int64_t>(cpu_room(p) / memory.kv_per_token * w.attention_dp / w.pp);
    if (!(swap_rate > 0))
      run.reasons.push_back(fmt::format("preemption swap: {} does not say the GPU's rate to its CPU", p.name));
  }
  if (!run.reasons.empty()) return run;
  run.notes = assumptions(p, s, w, set.lanes);
  if (!w.pooled()) {
    std::int64_t longest = 0;
    for (const served_request& r : list.requests) longest = std::max(longest, r.input);
    const std::int64_t all = set.clients > 0 ? set.clients : static_cast<std::int64_t>(list.requests.size());
    if (std::string held_up = prompts_held_up(set.lane, longest, (all + set.lanes - 1) / set.lanes);
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
    add_uses(run, prefill->prices.uses(options.explained), prefill->work.tp * prefill->work.attention_dp);
  return run;
}

}  // namespace nvlsim
