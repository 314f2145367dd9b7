#include "planner/worker_rates.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t requests_of_client = 4, min_requests = 24;
constexpr double apart = 0.2;   // spread of equal lengths, so that requests do not go in lockstep
constexpr double too_slow = 3;  // times the limit at which a ladder ends
constexpr double worth = 1.02;  // gain in rate for which twice the clients are tried again
constexpr std::int64_t max_clients = 1 << 16;
constexpr double busiest = 0.9;  // share of a prefill worker's rate that arrivals by chance can use

/// Where between two rungs of clients a time first exceeds its limit: 0 at the first, 1 at the second.
double share_within(double from, double to, double limit) {
  if (to <= limit) return 1;
  if (from > limit || !(to > from)) return 0;
  return std::log(limit / from) / std::log(to / from);
}

/// The rate at the last point within the limits, interpolated to the next.
void set_rate(rated_worker& r, const service_objective& o) {
  const double tpot = o.tpot_s.value_or(HUGE_VAL), ttft = o.ttft_s.value_or(HUGE_VAL);
  const bool first = r.role != worker_role::decode, next = r.role != worker_role::prefill;
  for (std::size_t i = 0; i < r.points.size(); ++i) {
    const worker_point& p = r.points[i];
    if ((first && p.ttft_s > ttft) || (next && p.tpot_s > tpot)) {
      if (i == 0) return;
      const worker_point& before = r.points[i - 1];
      double share = 1;
      if (first) share = std::min(share, share_within(before.ttft_s, p.ttft_s, ttft));
      if (next) share = std::min(share, share_within(before.tpot_s, p.tpot_s, tpot));
      const double rate = before.requests_per_s * std::pow(p.requests_per_s / before.requests_per_s, share);
      if (rate > r.requests_per_s) r.requests_per_s = rate, r.tpot_s = std::min(tpot, p.tpot_s);
      return;
    }
    if (p.requests_per_s > r.requests_per_s) r.requests_per_s = p.requests_per_s, r.tpot_s = p.tpot_s;
  }
}

bool past(const rated_worker& r, const service_objective& o) {
  const worker_point& p = r.points.back();
  if (r.role != worker_role::decode && p.ttft_s > too_slow * o.ttft_s.value_or(HUGE_VAL)) return true;
  if (r.role != worker_role::prefill && p.tpot_s > too_slow * o.tpot_s.value_or(HUGE_VAL)) return true;
  const std::size_t n = r.points.size();
  return n > 2 && p.requests_per_s < worth * r.points[n - 3].requests_per_s;
}

/// Nothing if the plan is stopped meanwhile.
std::optional<serving_run> played_alone(const scenario& s, const inference_workload& w, shared_runs& shared,
                                        const plan_watch& watch) {
  struct stopped {};
  serving_options o{.traced = false, .shared = &shared};
  if (watch.stop)
    o.seen = [&](const request_record&) {
      if (watch.stopped()) throw stopped{};
    };
  try {
    return serve(s.platform, s.stack, s.model, w, o);
  } catch (const stopped&) {
    return std::nullopt;
  }
}

rated_worker rated(const scenario& s, const rank_counts& shape, worker_role role, const plan_watch& watch,
                   std::int64_t& runs) {
  rated_worker out;
  out.shape = shape;
  out.role = role;
  const service_objective& objective = std::get<inference_workload>(s.workload).objective;
  const auto shared = runs_of_layout({s.platform, s.stack, s.model, alone(s, shape, role, 1)});
  for (std::int64_t clients = shape.attention_dp; clients <= max_clients && !watch.stopped(); clients *= 2) {
    const inference_workload w = alone(s, shape, role, clients);
    const auto played = played_alone(s, w, *shared, watch);
    if (!played) break;
    const serving_run& run = *played;
    if (!run.reasons.empty()) {
      if (out.points.empty()) out.reason = run.reasons.front();
      break;
    }
    ++runs;
    const inference_metrics m = measure_inference(run, w);
    out.points.push_back(
        {static_cast<double>(clients), m.requests_per_s, m.tpot_s ? m.tpot_s->mean : 0, m.ttft_s.mean});
    if (past(out, objective)) break;
  }
  set_rate(out, objective);
  if (role == worker_role::prefill) out.requests_per_s *= busiest;
  return out;
}

}  // namespace

std::vector<rank_counts> worker_shapes(const scenario& s, std::int64_t gpus) {
  const bool routed = has_routed_experts(s.model);
  const std::int64_t domain = std::max(1, s.platform.gpus_per_rack()), most = std::min(gpus, domain);
  std::set<int> sizes;
  for (std::int64_t n = 1; n <= most; n *= 2) sizes.insert(static_cast<int>(n));
  for (std::int64_t n = 1; n <= most; ++n)
    if (domain % n == 0) sizes.insert(static_cast<int>(n));
  std::vector<rank_counts> out;
  for (const int n : sizes) {
    out.push_back({n, 1, 1, 1, 1});
    if (!routed || n == 1) continue;
    out.push_back({n, 1, n, 1, 1});
    out.push_back({1, 1, n, n, 1});
  }
  return out;
}

inference_workload alone(const scenario& s, const rank_counts& shape, worker_role role, std::int64_t clients) {
  inference_workload w = std::get<inference_workload>(s.workload);
  static_cast<rank_counts&>(w) = shape;
  w.replicas = 1;
  w.prefill_pool.reset();
  w.prompts_cached = role == worker_role::decode;
  w.load = load_kind::closed_loop;
  w.mlperf.reset();  // its rules are of other loads
  w.measured = {.steady = true};
  w.concurrency = clients;
  w.requests = std::max(requests_of_client * clients, min_requests);
  w.tiers.clear();
  if (role == worker_role::prefill) w.output = {.mean = 1}, w.drafts = {};
  for (token_lengths* l : {&w.input, &w.output})
    if (l->shape == length_shape::uniform && l->spread == 0 && l->mean > 2) l->spread = apart;
  find_usual_settings(s.platform, s.stack, s.model, w);
  return w;
}

std::vector<rated_worker> rate_workers(const scenario& s, const std::vector<rank_counts>& shapes, worker_role role,
                                       const plan_watch& watch, std::int64_t& runs) {
  std::vector<rated_worker> out(shapes.size());
  std::vector<std::int64_t> counts(shapes.size());
  std::mutex reporting;
  std::int64_t done = 0;
  constexpr std::string_view stages[] = {"workers that do both", "prefill workers", "decode workers"};
  in_parallel(shapes.size(), [&](std::size_t i) {
    out[i] = rated(s, shapes[i], role, watch, counts[i]);
    const std::lock_guard lock(reporting);
    if (watch.report)
      watch.report(stages[static_cast<std::size_t>(role)], ++done, static_cast<std::int64_t>(shapes.size()));
  });
  for (const std::int64_t n : counts) runs += n;
  return out;
}

}  // namespace nvlsim
