#include "analysis/metric_amounts.hpp"

#include <algorithm>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/training_metrics.hpp"

namespace nvlsim {
namespace {

constexpr double seconds_per_hour = 3600;

double energy_of(const result& r, std::string_view consumer) {
  const value* v = r.energy.find(consumer);
  return v && v->number() ? *v->number() : 0;
}

void add_energy_and_price(metric_amounts& out, const scenario& s, const result& r, const char* whole) {
  out["gpus_J"] = energy_of(r, "gpus_J");
  for (const char* consumer : {"gpus_J", "cpus_J", "trays_and_switches_J", "supply_losses_J"})
    out[whole] += energy_of(r, consumer);
  out["price_usd_per_gpu_hour"] = s.platform.price.per_gpu.value_or(dollar_rate{}).base() * seconds_per_hour;
  out["seconds_per_hour"] = seconds_per_hour;
}

/// Time that the compute stream of the mean GPU waits for neighbours in the pipeline.
double waiting_for_stages(const scenario& s, const run_record& run) {
  const std::vector<stage_breakdown> stages = stage_breakdowns(run.planned, run.times, s.platform.gpu);
  double waiting = 0, gpus = 0;
  for (std::size_t c = 0; c < stages.size(); ++c) {
    const auto n = static_cast<double>(run.planned.classes[c].multiplicity);
    waiting += stages[c].waiting_pipeline.base() * n;
    gpus += n;
  }
  return waiting / gpus;
}

void add_training(metric_amounts& out, const scenario& s, const training_workload& w, const run_record& run) {
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  out["tp"] = count(w.par.tp);
  out["pp"] = count(w.par.pp);
  out["cp"] = count(w.par.cp);
  out["dp"] = count(w.par.dp);
  out["gpus"] = count(w.par.gpus());
  out["step_time_s"] = run.times.makespan.base();
  out["tokens_per_step"] = count(w.global_batch_size * w.seq_length);
  out["model_flop_per_step"] = model_flops_per_step(s.model, w, true);
  out["model_tflop_per_step"] = out["model_flop_per_step"] / 1e12;
  out["model_tflop_per_step_full_attention"] = model_flops_per_step(s.model, w, false) / 1e12;
  out["dense_peak_flop_per_s"] = s.platform.gpu.dense_peak(w.gemm_precision).value_or(flop_rate{}).base();
  out["waiting_for_stages_s"] = waiting_for_stages(s, run);
  out["token_budget"] = w.token_budget.value_or(0);
  out["steps"] = out["token_budget"] / out["tokens_per_step"];
  add_energy_and_price(out, s, run.outcome, "energy_per_step_J");
}

/// Sums over the requests of a load.
void add_requests(metric_amounts& out, const inference_workload& w, const run_record& run) {
  const counted_span rates = counted_span_of(run);
  const auto arrivals = run.counted_arrivals.value_or(std::pair{rates.from, rates.to});
  double &requests = out["requests"], &outputs = out["output_tokens"], &tokens = out["total_tokens"];
  double &generated = out["million_output_tokens"], &cached = out["cached_tokens"],
         &prompts = out["prompt_tokens"];
  double &measured = out["measured_requests"], &within = out["requests_within_limits"];
  double in_system_s = 0, tpot_s = 0, several_tokens = 0;
  for (const request_record& r : run.requests) {
    const double n = r.workers, share = n * counted_share(r, rates.from, rates.to, rates.whole);
    requests += share;
    outputs += share * r.output;
    tokens += share * (r.input + r.output);
    in_system_s += n * time_in_system(r, rates.from, rates.to);
    generated += n * r.output / 1e6;
    cached += n * r.cached;
    prompts += n * r.input;
    if (run.counted_arrivals && (r.arrival_s < arrivals.first || r.arrival_s > arrivals.second)) continue;
    const client_view seen = seen_by_client(r, run.front_end);
    measured += n;
    if (seen.keeps(w.objective)) within += n;
    if (!seen.tpot_s) continue;
    tpot_s += n * *seen.tpot_s;
    several_tokens += n;
  }
  const auto ratio = [](double x, double of) { return of > 0 ? x / of : 0; };
  out["counted_time_s"] = rates.to - rates.from;
  out["requests_per_s"] = ratio(requests, rates.to - rates.from);
  out["in_system_s"] = in_system_s;
  out["time_in_system_s"] = ratio(in_system_s, requests);
  out["slo_attained_fraction"] = ratio(within, measured);
  out["tpot_s.mean"] = ratio(tpot_s, several_tokens);
  out["arrivals_after_first"] = measured - 1;
  out["arrival_time_s"] = arrivals.second - arrivals.first;
}

void add_inference(metric_amounts& out, const scenario& s, const inference_workload& w, const run_record& run) {
  out["tp"] = w.tp;
  out["pp"] = w.pp;
  out["attention_dp"] = w.attention_dp;
  out["replicas"] = w.replicas;
  out["gpus"] = w.gpus();
  out["makespan_s"] = run.times.makespan.base();
  out["peak_kv_tokens"] = static_cast<double>(run.cache.peak_tokens);
  out["kv_capacity_tokens"] = static_cast<double>(run.cache.capacity_tokens);
  add_requests(out, w, run);
  add_energy_and_price(out, s, run.outcome, "energy_J");
}

void add_collective(metric_amounts& out, const collective_workload& w, const run_record& run) {
  out["size_bytes"] = w.size.base();
  out["bus_factor"] = bus_factor(w.operation, static_cast<int>(w.gpus));
  out["time_s"] = run.times.makespan.base();
}

}  // namespace

counted_span counted_span_of(const run_record& run) {
  const double end = run.times.makespan.base();
  if (!run.counted) return {0, end, true};
  const auto [from, to] = *run.counted;
  return {from, to, from <= 0 && to >= end};
}

metric_amounts amounts_of(const scenario& s, const run_record& run) {
  metric_amounts out;
  if (const auto* t = std::get_if<training_workload>(&s.workload)) add_training(out, s, *t, run);
  else if (const auto* i = std::get_if<inference_workload>(&s.workload)) add_inference(out, s, *i, run);
  else if (const auto* c = std::get_if<collective_workload>(&s.workload)) add_collective(out, *c, run);
  return out;
}

}  // namespace nvlsim
