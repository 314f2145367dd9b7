#include "planner/serving_trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "nvlsim/run/run.hpp"
#include "nvlsim/search/highest_load.hpp"
#include "nvlsim/serving/pools.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t min_trial_requests = 2000;
constexpr auto max_trial_requests = static_cast<std::int64_t>(in_flight_times * usual_users_of_router);
constexpr double usual_ttft_s = 1;

/// Six digits, downwards: exact in the text of a scenario.
double rounded_down(double x) {
  if (!(x > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(x)) - 5);
  return std::stod(fmt::format("{:.6g}", std::floor(x / unit) * unit));
}

value ranks_value(const rank_counts& r, const char* count, std::int64_t tokens) {
  value out{value::object{{count, r.replicas}}};
  if (r.tp > 1 || r.attention_dp == 1) out.set("tp", r.tp);
  if (r.attention_dp > 1) out.set("attention_dp", r.attention_dp);
  if (r.ep > 1) out.set("ep", r.ep);
  if (tokens > 0) out.set("max_num_tokens", tokens);
  return out;
}

std::int64_t requests_for(const plan_base& base, const server_trial& t) {
  const value* mean = base.text.at_pointer("/workload/load/output/mean");
  double tokens = 1;
  if (mean && mean->integer()) tokens = static_cast<double>(*mean->integer());
  if (mean && mean->number()) tokens = *mean->number();
  const double in_flight = t.guess * (usual_ttft_s + t.tpot_s * tokens);
  return std::clamp(static_cast<std::int64_t>(in_flight_times * in_flight), min_trial_requests,
                    max_trial_requests);
}

/// What the deployment does at a load that it was found to hold. Rounding moves arrivals, and one request more may
/// miss a limit: the load falls until the limits are kept. Nothing if they are not.
std::optional<inference_metrics> shown(const scenario& s, inference_workload& w) {
  constexpr int falls = 6;
  constexpr double fall = 0.002;  // to what loads are found
  for (int i = 0; i < falls; ++i, w.arrivals.rate_per_s = rounded_down((1 - fall) * w.arrivals.rate_per_s)) {
    const serving_run run = serve(s.platform, s.stack, s.model, w, {.traced = false});
    if (!run.reasons.empty()) return std::nullopt;
    inference_metrics m = measure_inference(run, w);
    if (m.objective_met) return m;
  }
  return std::nullopt;
}

server_held run_trial(const plan_base& base, const server_trial& t, const plan_watch& watch) {
  server_held out;
  out.trial = t;
  try {
    const scenario s =
        read_base(base, members_of(base, t, std::max(rounded_down(t.guess), 1e-6), requests_for(base, t)));
    const highest_load h = find_highest_load(s, {}, watch.stop);
    out.runs = h.runs + 1;
    out.stopped = h.stopped;
    if (!h.found) {
      out.missed = h.missed;
      return out;
    }
    inference_workload w = h.workload;
    w.arrivals.rate_per_s = rounded_down(h.load);
    out.requests = w.requests;
    out.users = h.in_flight;
    if (!h.stopped) {
      const auto m = shown(s, w);
      if (!m) {
        out.missed = "no load near the highest keeps the limits";
        return out;
      }
      out.users = m->requests_in_flight;
    }
    out.requests_per_s = w.arrivals.rate_per_s;
    if (h.stopped) out.limit = "interrupted: it may hold more";
    else if (!h.bounded) out.limit = "every load that was tried meets the limits";
    else if (h.short_run) out.limit = "the runs are too short to find the limit";
    else if (h.few()) out.limit = "too few requests were measured for a reliable load";
  } catch (const input_error& e) {
    out.missed = e.problems().empty() ? e.what() : e.problems().front().what;
  }
  return out;
}

}  // namespace

std::int64_t server_trial::gpus() const {
  const auto of = [](const rank_counts& r) { return std::int64_t{r.replicas} * r.gpus_per_replica(); };
  return of(workers) + (pooled ? of(prefill) : 0);
}

std::string server_trial::key() const {
  const auto of = [](const rank_counts& r) {
    return fmt::format("{:06}x{:04}.{:04}.{:04}", r.replicas, r.tp, r.attention_dp, r.ep);
  };
  return fmt::format("{} {} {} {} {}", pooled, of(workers), pooled ? of(prefill) : "", max_num_tokens,
                     prefill_tokens);
}

std::vector<std::pair<std::string, value>> members_of(const plan_base& base, const server_trial& t,
                                                      double requests_per_s, std::int64_t requests) {
  value layout;
  if (t.pooled) {
    layout = value::object{{"prefill", ranks_value(t.prefill, "workers", t.prefill_tokens)},
                           {"decode", ranks_value(t.workers, "workers", t.max_num_tokens)}};
  } else {
    layout = ranks_value(t.workers, "replicas", t.max_num_tokens);
    if (const value* router = base.text.at_pointer("/workload/layout/router")) layout.set("router", *router);
  }
  return {{"/platform/racks", t.racks},
          {"/workload/layout", std::move(layout)},
          {"/workload/load/requests", requests},
          {"/workload/load/requests_per_s", requests_per_s}};
}

std::vector<server_held> trial_runner::hold(const std::vector<server_trial>& trials) {
  std::vector<const server_trial*> fresh;
  for (const server_trial& t : trials)
    if (!done_.contains(t.key()) &&
        std::none_of(fresh.begin(), fresh.end(), [&](const server_trial* f) { return f->key() == t.key(); }))
      fresh.push_back(&t);
  std::vector<server_held> found(fresh.size());
  std::mutex reporting;
  std::int64_t done = 0;
  in_parallel(fresh.size(), [&](std::size_t i) {
    found[i].trial = *fresh[i];
    found[i].missed = "interrupted";
    if (!watch_.stopped()) found[i] = run_trial(base_, *fresh[i], watch_);
    const std::lock_guard lock(reporting);
    if (watch_.report) watch_.report("deployments run", ++done, static_cast<std::int64_t>(fresh.size()));
  });
  for (server_held& h : found) {
    runs_ += h.runs;
    if (h.missed != "interrupted" && (!h.stopped || h.requests_per_s > 0))
      done_.emplace(h.trial.key(), std::move(h));
  }
  std::vector<server_held> out;
  for (const server_trial& t : trials) {
    const auto at = done_.find(t.key());
    if (at != done_.end()) out.push_back(at->second);
  }
  return out;
}

std::vector<server_held> trial_runner::all() const {
  std::vector<server_held> out;
  for (const auto& [key, h] : done_) out.push_back(h);
  return out;
}

std::int64_t copies_for(double demand, double one) {
  auto copies = std::max(std::int64_t{1}, static_cast<std::int64_t>(std::ceil(demand / one)) - 1);
  while (static_cast<double>(copies) * one < demand) ++copies;  // the quotient is rounded
  return copies;
}

planned_server finished(const plan_base& base, const server_held& h, std::int64_t copies) {
  planned_server out;
  const server_trial& t = h.trial;
  out.pooled = t.pooled;
  out.workers = t.workers;
  out.prefill = t.prefill;
  out.copies = copies;
  out.gpus = copies * t.gpus();
  out.max_num_tokens = t.max_num_tokens;
  out.prefill_tokens = t.prefill_tokens;
  out.requests_per_s = static_cast<double>(copies) * h.requests_per_s;
  out.users = static_cast<double>(copies) * h.users;
  out.limit = h.limit;
  const auto members = members_of(base, t, h.requests_per_s, h.requests);
  out.text = with_members(base.text, members);
  const scenario s = read_base(base, members);
  const auto& w = std::get<inference_workload>(s.workload);
  const auto limits_in = [&](const inference_workload& pool) {
    const engine_settings set = settings_of(*s.stack.inference, pool);
    return worker_limits{set.max_batch_size.read(), set.max_num_tokens.read()};
  };
  out.limits = limits_in(w);
  if (w.prefill_pool) out.prefill_limits = limits_in(prefill_workload(w));
  out.outcome = run_scenario(s, {.simulate = false}).outcome;
  return out;
}

}  // namespace nvlsim
