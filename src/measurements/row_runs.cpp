// Runs rows of inference.csv with the simulator that `run` uses, and computes their values again at other costs.
#include "nvlsim/measurements/row_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/pools.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t no_limit = std::int64_t{1} << 40;
constexpr int max_replicas = 4;    // of an open loop; more give the same result
constexpr double longest_s = 120;  // length of arrivals if the source gives no number of requests
constexpr double min_requests = 500, max_requests = 20'000;

/// The number that a file has: the row's scenario is to give the same digits.
double as_written(double x) {
  const std::string text = fmt::format("{:.9g}", x);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// The workload of some of the replicas of an open loop, with their share of the arrivals.
inference_workload open_loop(const inference_row& r) {
  inference_workload w = r.workload;
  const double share = w.pooled() ? 1 : std::min(1.0, static_cast<double>(max_replicas) / w.replicas);
  if (!w.pooled()) w.replicas = std::min(w.replicas, max_replicas);
  w.arrivals.rate_per_s = as_written(*r.request_rate * share);
  if (w.requests == 0)
    w.requests = std::llround(std::clamp(w.arrivals.rate_per_s * longest_s, min_requests, max_requests));
  return w;
}

/// The workload of a long run with as many requests as show its steady middle.
inference_workload long_enough(const inference_row& r) {
  inference_workload w = r.workload;
  const serving_memory memory = plan_serving_memory(r.hardware, *r.software, *r.net, w);
  const schedule_limits l = limits_of(*r.software->inference, w, memory);
  const double held = w.input.mean + w.output.mean / 2 +
                      static_cast<double>(l.sequence.beside(std::llround(w.input.mean + w.output.mean)));
  const double batch = std::min(static_cast<double>(l.settings.max_batch_size),
                                static_cast<double>(memory.kv_capacity_tokens) / held + 1);
  w.requests = std::min(w.requests, (static_cast<std::int64_t>(4 * batch) + 1) * r.workers());
  return w;
}

/// Tokens/s of one replica in a long run, dominated by its steady middle. An MLPerf run lasts ten minutes and
/// sends each sample. Ramp-up and drain take as long as in a short run.
double long_run(const inference_row& r, const run_summary& s, const client_times& mean) {
  constexpr double min_s = 600;
  const double steady = mean.steady_tokens_per_s, ends = std::max(0.0, mean.makespan_s - s.output_tokens / steady);
  const double middle = std::max(min_s, r.samples / r.workers() * s.mean_output / steady);
  return steady * middle / (middle + ends);
}

class_times times_of(const inference_row& r, const stack& s, const run_summary& summary) {
  class_times out;
  const auto price = [&](const inference_workload& w, const std::vector<iteration_class>& classes) {
    std::vector<double> times;
    if (classes.empty()) return times;
    iteration_costs costs(r.hardware, s, *r.net, w);
    for (const iteration_class& c : classes) times.push_back(costs.time(c.mean).base());
    return times;
  };
  out.decode = price(decode_workload(r.workload), summary.decode);
  if (r.workload.prefill_pool) out.prefill = price(prefill_workload(r.workload), summary.prefill);
  return out;
}

/// A target's value in the unit of its column. `share`: of the row's workers, those that ran.
double in_column(const metric_target& t, const inference_metrics& m, const inference_row& r, double share) {
  const auto of = [&](const distribution& d) { return 1e3 * (t.median ? d.p50 : d.mean); };
  const inference_workload& w = r.workload;
  const double counted = r.counts_prompts ? w.input.mean : 1;  // tokens counted per request
  double per_second = counted * m.output_tokens_per_s / share;
  // Decode workers alone are measured while full.
  if (w.prompts_cached && m.tpot_s) per_second = static_cast<double>(w.concurrency) / m.tpot_s->mean;
  switch (t.what) {
    case served_metric::tpot:
      return m.tpot_s ? of(*m.tpot_s) : 0;
    case served_metric::ttft:
      return of(m.ttft_s);
    case served_metric::throughput:
      return per_second;
    case served_metric::throughput_per_gpu:
      return per_second / r.gpus;
  }
  return 0;
}

double in_column(const metric_target& t, const client_times& c, double tokens_per_s, double gpus) {
  switch (t.what) {
    case served_metric::tpot:
      return c.tpot_s * 1e3;
    case served_metric::ttft:
      return c.ttft_s * 1e3;
    case served_metric::throughput:
      return tokens_per_s;
    case served_metric::throughput_per_gpu:
      return tokens_per_s / gpus;
  }
  return 0;
}

serving_run run_with(const inference_row& r, const stack& s, const serving_options& o) {
  return serve(r.hardware, s, *r.net, workload_of(r), o);
}

}  // namespace

inference_workload workload_of(const inference_row& r) {
  return r.request_rate ? open_loop(r) : r.steady ? long_enough(r) : r.workload;
}

bool fits(const inference_row& r, const stack& s) { return run_with(r, s, {.play = nullptr}).reasons.empty(); }

bool can_freeze(const inference_row& r) {
  return !r.request_rate ||
         (r.workers() == 1 && !r.workload.pooled() &&
          std::none_of(r.targets.begin(), r.targets.end(), [](const metric_target& t) { return t.median; }));
}

run_summary freeze(const inference_row& r, const stack& s) {
  std::vector<worker_iterations> workers;
  serving_outcome outcome;
  serving_options o;
  o.kv_capacity_tokens = fits(r, s) ? std::nullopt : std::optional(no_limit);
  o.play = [&](const std::vector<server_case>& cases) {
    server_case c = cases.front();  // the others serve the same requests, or one less
    c.settings.keep_iterations = c.settings.traced = true;
    c.price = [&workers, price = c.price](std::size_t i, const iteration& it) {
      if (workers.size() <= i) workers.resize(i + 1);
      workers[i].contents.push_back(it);
      return price(i, it);
    };
    served_cases played = serve_by_queue({c});
    outcome = played.outcomes.front();
    played.outcomes.resize(cases.size(), outcome);
    return played;
  };
  const serving_run run = run_with(r, s, o);
  if (!run.reasons.empty()) throw input_error({{"", "", run.reasons.front(), {}}});
  workers.resize(outcome.workers.size());
  for (std::size_t i = 0; i < workers.size(); ++i) {
    workers[i].prefills = outcome.workers[i].prefills;
    for (const traced_iteration& t : outcome.workers[i].iterations) {
      workers[i].begin_s.push_back(t.begin_s);
      workers[i].end_s.push_back(t.end_s);
    }
  }
  return summarise(workers, outcome.requests, r.workload.drafts.tokens_per_step);
}

std::vector<double> simulate_frozen(const inference_row& r, const stack& s, const run_summary& summary) {
  const class_times times = times_of(r, s, summary);
  const front_end_costs server = behind_server(r.workload) ? s.inference->front_end : front_end_costs{};
  const client_times mean = mean_times(summary, times, server);
  const double counted = r.counts_prompts ? r.workload.input.mean : 1;  // tokens counted per request
  const double per_second =
      r.workload.pooled() ? static_cast<double>(r.workload.concurrency) / mean.tpot_s
                          : counted * r.workers() *
                                (r.steady ? long_run(r, summary, mean) : summary.output_tokens / mean.makespan_s);
  const bool single = !summary.class_of.empty();
  std::vector<double> out;
  for (const metric_target& t : r.targets)
    out.push_back(
        in_column(t, t.median && single ? median_times(summary, times, server) : mean, per_second, r.gpus));
  return out;
}

std::vector<double> simulate_row(inference_row& r, const stack& s) {
  const auto note = [&](const std::string& text) {
    r.record.notes += (r.record.notes.empty() ? "" : "; ") + text;
  };
  if (r.steady) return simulate_frozen(r, s, freeze(r, s));
  serving_run run = run_with(r, s, {.traced = false});
  if (!run.reasons.empty()) {  // the published run did fit
    note("does not fit as modelled: " + run.reasons.front());
    model unbounded = *r.net;
    unbounded.max_positions = 0;
    run = serve(r.hardware, s, unbounded, workload_of(r), {.kv_capacity_tokens = no_limit, .traced = false});
  }
  if (!run.reasons.empty()) {
    r.record.status = record_status::infeasible;
    r.record.reason = run.reasons.front();
    return {};
  }
  const inference_workload w = workload_of(r);
  const inference_metrics m = measure_inference(run, w);
  if (m.saturated) note("saturated at this rate: the batch is at its maximum");
  const double share = static_cast<double>(w.replicas) / r.workload.replicas;
  std::vector<double> out;
  for (const metric_target& t : r.targets) out.push_back(in_column(t, m, r, share));
  return out;
}

}  // namespace nvlsim
