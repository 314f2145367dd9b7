// Simulates open-loop rows request by request. [docs/models-and-assumptions.md#inference-open-loop]
#include <algorithm>
#include <cmath>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/serving/iteration_prices.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t no_limit = std::int64_t{1} << 40;
constexpr int max_replicas = 4;    // identical replicas; more give the same result
constexpr double longest_s = 120;  // length of arrivals if the source gives no number of requests
constexpr double min_requests = 500, max_requests = 20'000;

/// The workload of some of the replicas, with their share of the arrivals.
inference_workload load_of(const inference_row& r) {
  inference_workload w = r.workload;
  const double share = w.pooled() ? 1 : std::min(1.0, static_cast<double>(max_replicas) / w.replicas);
  if (!w.pooled()) w.replicas = std::min(w.replicas, max_replicas);
  w.arrivals.rate_per_s = *r.request_rate * share;
  if (w.requests == 0)
    w.requests = std::llround(std::clamp(w.arrivals.rate_per_s * longest_s, min_requests, max_requests));
  return w;
}

double in_column(const metric_target& t, const inference_metrics& m, const inference_row& r, double share) {
  const auto of = [&](const distribution& d) { return 1e3 * (t.median ? d.p50 : d.mean); };
  switch (t.what) {
    case served_metric::tpot:
      return m.tpot_s ? of(*m.tpot_s) : 0;
    case served_metric::ttft:
      return of(m.ttft_s);
    case served_metric::throughput:
      return m.output_tokens_per_s / share;
    case served_metric::throughput_per_gpu:
      return m.output_tokens_per_s / share / r.gpus;
  }
  return 0;
}

}  // namespace

std::vector<double> simulate_open_loop(inference_row& r, const stack& s) {
  const inference_workload w = load_of(r);
  const auto note = [&](const std::string& text) {
    r.record.notes += (r.record.notes.empty() ? "" : "; ") + text;
  };
  serving_run run = serve(r.hardware, s, *r.net, w);
  if (!run.reasons.empty()) {
    // The published run did fit.
    note("does not fit as modelled: " + run.reasons.front());
    run = serve(r.hardware, s, *r.net, w, {.kv_capacity_tokens = no_limit});
  }
  if (!run.reasons.empty()) {
    r.record.status = record_status::infeasible;
    r.record.reason = run.reasons.front();
    return {};
  }
  const inference_metrics m = measure_serving(run, w);
  if (m.saturated) note("saturated at this rate: the batch is at its maximum");
  const double share = static_cast<double>(w.replicas) / r.workload.replicas;
  std::vector<double> out;
  for (const metric_target& t : r.targets) out.push_back(in_column(t, m, r, share));
  return out;
}

bool can_freeze(const inference_row& r) {
  return r.workers() == 1 && !r.workload.pooled() && r.record.scenario == "open-loop" &&
         std::none_of(r.targets.begin(), r.targets.end(), [](const metric_target& t) { return t.median; });
}

pooled_summary summarise_open_loop(const inference_row& r, const stack& s) {
  const inference_workload w = load_of(r);
  const request_list list = generate_requests(w, r.net->max_positions);
  server_settings set;
  set.worker = limits_of(*s.inference, w, plan_serving_memory(r.hardware, s, *r.net, w));
  set.keep_iterations = true;
  iteration_costs costs(r.hardware, s, *r.net, w);
  iteration_prices prices(costs, 0);
  std::vector<iteration> iterations;
  std::vector<double> begin, end;
  const serving_outcome run = serve_requests(list, set, [&](const iteration& it) {
    iterations.push_back(it);
    return prices.price(it);
  });
  for (const traced_iteration& t : run.workers.front().iterations) {
    begin.push_back(t.begin_s);
    end.push_back(t.end_s);
  }
  return summarise(iterations, begin, end, run.requests, w.drafts.tokens_per_step);
}

}  // namespace nvlsim
