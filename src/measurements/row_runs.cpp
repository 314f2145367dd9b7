// Runs rows of inference.csv with the simulator that `run` uses, and computes their values again at other costs.
#include "nvlsim/measurements/row_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "nvlsim/serving/pools.hpp"

namespace nvlsim {
namespace {

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

class_times times_of(const inference_row& r, const stack& s, const run_summary& summary) {
  class_times out;
  const auto price = [&](const inference_workload& w, const std::vector<iteration_class>& classes) {
    std::vector<double> times;
    if (classes.empty()) return times;
    iteration_costs costs(r.hardware, s, *r.net, w);
    for (const iteration_class& c : classes) times.push_back(costs.time(c.mean).base());
    return times;
  };
  const inference_workload row = workload_of(r);
  out.decode = price(decode_workload(row), summary.decode);
  if (row.prefill_pool) out.prefill = price(prefill_workload(row), summary.prefill);
  return out;
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
  inference_workload w = r.request_rate ? open_loop(r) : r.workload;
  for (double* const x :
       {&w.input.mean, &w.input.spread, &w.output.mean, &w.output.spread, &w.drafts.tokens_per_step})
    *x = as_written(*x);
  return w;
}

std::vector<row_figure> figures_of(const inference_row& r) {
  const inference_workload w = workload_of(r);
  const double share =
      static_cast<double>(w.replicas) / r.workload.replicas;   // of the row's workers, those that run
  const double counted = r.counts_prompts ? w.input.mean : 1;  // tokens counted per request
  std::vector<row_figure> out;
  for (const metric_target& t : r.targets) {
    row_figure f{t.column, "output_tokens_per_s", "", counted / share};
    if (t.what == served_metric::throughput_per_gpu) f.factor /= r.gpus;
    if (t.what == served_metric::tpot || t.what == served_metric::ttft)
      f = {t.column, t.what == served_metric::tpot ? "tpot_s" : "ttft_s", t.median ? "p50" : "mean", 1e3};
    out.push_back(std::move(f));
  }
  return out;
}

double row_figure::of(const inference_metrics& m) const {
  if (metric == "output_tokens_per_s") return m.output_tokens_per_s;
  if (metric == "tpot_s" && !m.tpot_s) return 0;
  const distribution& d = metric == "tpot_s" ? *m.tpot_s : m.ttft_s;
  return statistic == "p50" ? d.p50 : d.mean;
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
  return summarise(workers, outcome.requests);
}

std::vector<double> simulate_frozen(const inference_row& r, const stack& s, const run_summary& summary) {
  const class_times times = times_of(r, s, summary);
  const inference_workload w = workload_of(r);
  const front_end_costs server = behind_server(w) ? s.inference->front_end : front_end_costs{};
  const client_times mean = mean_times(summary, times, server);
  const double counted = r.counts_prompts ? w.input.mean : 1;  // tokens counted per request
  const double per_second = w.pooled() ? static_cast<double>(w.concurrency) / mean.tpot_s
                                       : counted * r.workers() * summary.output_tokens / mean.makespan_s;
  const bool single = !summary.class_of.empty();
  std::vector<double> out;
  for (const metric_target& t : r.targets)
    out.push_back(
        in_column(t, t.median && single ? median_times(summary, times, server) : mean, per_second, r.gpus));
  return out;
}

std::vector<double> simulate_row(inference_row& r, const stack& s) {
  const inference_workload w = workload_of(r);
  const serving_run run = serve(r.hardware, s, *r.net, w, {.traced = false});
  if (!run.reasons.empty()) {
    r.record.status = record_status::infeasible;
    r.record.reason = run.reasons.front();
    return {};
  }
  const inference_metrics m = measure_inference(run, w);
  if (m.saturated)
    r.record.notes +=
        fmt::format("{}saturated at this rate: the batch is at its maximum", r.record.notes.empty() ? "" : "; ");
  std::vector<double> out;
  for (const row_figure& f : figures_of(r)) out.push_back(f.factor * f.of(m));
  return out;
}

}  // namespace nvlsim
