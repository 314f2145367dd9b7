#include "nvlsim/analysis/sections.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/job_energy.hpp"
#include "nvlsim/analysis/metric_values.hpp"
#include "nvlsim/analysis/training_metrics.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {

value memory_section(const memory_report& m) {
  value items{value::array{}};
  for (const memory_item& i : m.items) {
    value x{value::object{}};
    x.set("name", i.name);
    x.set("bytes", i.size.base());
    x.set("reason", i.reason);
    items.items()->push_back(std::move(x));
  }
  value out{value::object{}};
  out.set("where", m.where);
  out.set("peak_bytes", m.peak.base());
  out.set("usable_bytes", m.usable.base());
  out.set("items", std::move(items));
  return out;
}

std::string too_large(const memory_report& m) {
  if (m.offloaded > m.offload_room && m.peak <= m.usable)
    return fmt::format("{} offloads {} of activations to CPU memory; a GPU's share of CPU memory is {}", m.where,
                       format_quantity(m.offloaded), format_quantity(m.offload_room));
  std::string text = fmt::format("{} needs {} of GPU memory and {} are usable:", m.where, format_quantity(m.peak),
                                 format_quantity(m.usable));
  for (const memory_item& i : m.items) text += fmt::format(" {} {},", i.name, format_quantity(i.size));
  text.pop_back();
  const double over = m.peak / m.usable - 1;
  if (over <= training_memory_error)
    text +=
        fmt::format("; the excess of {:.1f} % is within the error of this estimate (up to {:g} %), so it may fit",
                    100 * over, 100 * training_memory_error);
  return text;
}

namespace {

value optional_number(const std::optional<double>& x) { return x ? value{*x} : value{}; }

value stage_section(const stage_breakdown& b, seconds step) {
  value out{value::object{}};
  const auto put = [&](std::string_view key, seconds t) {
    if (t > seconds{}) out.set(std::string(key) + "_s", t.base());
  };
  for (int k = 0; k < work_kinds; ++k) put(name(static_cast<work_kind>(k)), b.busy[static_cast<std::size_t>(k)]);
  put("waiting_data_parallel", b.waiting_data_parallel);
  put("bubble", b.waiting_pipeline);
  out.set("step_time_s", step.base());
  return out;
}

/// Bands of the step time and of the metrics proportional to it or to its inverse.
void add_step_bands(result& r, step_band b) {
  const auto band = [&](const char* metric, double low, double high) {
    const value* v = r.metrics.find(metric);
    if (v && v->number())
      r.bands.set(metric, value{value::array{value{*v->number() * low}, value{*v->number() * high}}});
  };
  for (const char* m : {"step_time_s", "cost_per_step_usd", "time_to_train_s", "cost_to_train_usd"})
    band(m, b.low, b.high);
  if (!(b.low > 0)) return;
  for (const char* m : {"tokens_per_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu",
                        "model_tflops_per_gpu_full_attention", "mfu"})
    band(m, 1 / b.high, 1 / b.low);
}

void add_energy(result& r, const job_energy& e) {
  r.energy.set("gpus_J", e.gpus.base());
  r.energy.set("cpus_J", e.cpus.base());
  r.energy.set("trays_and_switches_J", e.trays_and_switches.base());
  r.energy.set("supply_losses_J", e.supply_losses.base());
}

value distribution_value(const distribution& d) {
  return value{value::object{
      {"mean", d.mean}, {"p50", d.p50}, {"p90", d.p90}, {"p95", d.p95}, {"p99", d.p99}, {"max", d.max}}};
}

value optional_distribution(const std::optional<distribution>& d) { return d ? distribution_value(*d) : value{}; }

/// Energy of all GPUs of all classes, idle time included.
joules gpu_energy(const platform& p, const plan& work, const timeline& times) {
  joules all;
  for (std::size_t c = 0; c < work.classes.size(); ++c) {
    const stream& s = work.classes[c].streams.front();
    joules one;
    seconds busy;
    for (const operation& o : s.operations) {
      const work_template& t = work.templates[static_cast<std::size_t>(o.work)];
      one += t.power * t.duration;
      busy += t.duration;
    }
    one += p.gpu.idle_power * (times.makespan - busy);
    all += one * static_cast<double>(work.classes[c].multiplicity);
  }
  return all;
}

/// Seconds by kind of work, for the mean replica.
value iteration_breakdown(const plan& work, const timeline& times) {
  std::array<seconds, work_kinds> by_kind{};
  double gpus = 0;
  for (const rank_class& c : work.classes) gpus += static_cast<double>(c.multiplicity);
  seconds busy;
  for (const rank_class& c : work.classes)
    for (const operation& o : c.streams.front().operations)
      for (const work_part& part : work.templates[static_cast<std::size_t>(o.work)].parts) {
        const seconds t = part.duration * (part.repeat * static_cast<double>(c.multiplicity) / gpus);
        by_kind[static_cast<std::size_t>(part.kind)] += t;
        busy += t;
      }
  value out{value::object{}};
  for (int k = 0; k < work_kinds; ++k)
    if (by_kind[static_cast<std::size_t>(k)] > seconds{})
      out.set(std::string(name(static_cast<work_kind>(k))) + "_s", by_kind[static_cast<std::size_t>(k)].base());
  if (times.makespan > busy) out.set("idle_s", (times.makespan - busy).base());
  out.set("makespan_s", times.makespan.base());
  return out;
}

}  // namespace

void add_training_sections(result& r, const platform& p, const model& net, const training_workload& w,
                           const plan& work, const timeline& times, const memory_report& memory, step_band band) {
  const training_metrics t = measure_training(p, net, w, work, times);
  const training_values values = values_of(t, memory.peak, w.token_budget);
  value& m = r.metrics;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!needs_token_budget(training_metric_names[i]) || w.token_budget)
      m.set(training_metric_names[i], optional_number(values[i]));
  m.set("gpus", t.gpus);
  if (band.known()) add_step_bands(r, band);
  r.breakdown.set("mean_over_gpus", stage_section(t.mean, t.step_time));
  value stages{value::object{}};
  const auto all = stage_breakdowns(work, times, p.gpu);
  if (all.size() <= 64)
    for (std::size_t c = 0; c < all.size(); ++c)
      stages.set(work.classes[c].name, stage_section(all[c], t.step_time));
  r.breakdown.set("by_stage", std::move(stages));
  add_energy(r, t.energy);
  r.energy.set("per_token_J", t.energy.total().base() / t.tokens_per_step);
  r.cost.set("per_step_usd", t.cost ? value{t.cost->base()} : value{});
  r.cost.set("per_million_tokens_usd", t.cost ? value{t.cost->base() / t.tokens_per_step * 1e6} : value{});
}

namespace {

/// Totals of a serving run that clients do not see.
struct served_totals {
  joules gpu_energy;
  seconds makespan;
  double output_tokens = 0;
};

void set_latencies(value& m, const inference_metrics& i) {
  m.set("ttft_s", distribution_value(i.ttft_s));
  m.set("tpot_s", optional_distribution(i.tpot_s));
  m.set("itl_s", optional_distribution(i.itl_s));
  m.set("e2e_s", distribution_value(i.e2e_s));
  m.set("queue_s", distribution_value(i.queue_s));
}

void set_inference_metrics(result& r, const platform& p, const inference_workload& w, const inference_metrics& i,
                           const memory_report& memory, const served_totals& totals) {
  const double gpus = static_cast<double>(w.gpus());
  value& m = r.metrics;
  m.set("output_tokens_per_s", i.output_tokens_per_s);
  m.set("output_tokens_per_s_per_gpu", i.output_tokens_per_s_per_gpu);
  m.set("total_tokens_per_s", i.total_tokens_per_s);
  m.set("requests_per_s", i.requests_per_s);
  m.set("goodput_requests_per_s", optional_number(i.goodput_requests_per_s));  // null without an objective
  m.set("total_tokens_per_s_per_gpu", i.total_tokens_per_s_per_gpu);
  m.set("output_tokens_per_s_per_user", optional_number(i.output_tokens_per_s_per_user));
  const job_energy energy = energy_of_job(p, totals.gpu_energy, static_cast<std::int64_t>(gpus), totals.makespan);
  m.set("energy_per_million_tokens_J", energy.total().base() / totals.output_tokens * 1e6);
  value run_usd, million_usd;
  if (p.price.per_gpu) {
    const double usd = (*p.price.per_gpu * totals.makespan).base() * gpus;
    run_usd = value{usd};
    million_usd = value{usd / totals.output_tokens * 1e6};
  }
  m.set("cost_per_million_tokens_usd", std::move(million_usd));
  m.set("power_W_per_gpu", (energy.gpus / totals.makespan).base() / gpus);
  m.set("memory_peak_bytes", memory.peak.base());
  m.set("kv_cache_used_fraction", i.kv_cache_used_fraction);
  m.set("makespan_s", totals.makespan.base());
  m.set("gpus", static_cast<std::int64_t>(gpus));
  set_latencies(m, i);
  add_energy(r, energy);
  r.cost.set("run_usd", std::move(run_usd));
}

/// Seconds by kind of work, for the mean GPU.
value use_breakdown(const serving_run& run, double gpus) {
  std::array<double, work_kinds> by_kind{};
  double busy = 0;
  for (const iteration_use& u : run.uses) {
    const double share = u.gpus / gpus;
    for (const work_part& part : u.work.parts)
      by_kind[static_cast<std::size_t>(part.kind)] +=
          part.duration / u.work.duration * part.repeat * u.seconds * share;
    busy += u.seconds * share;
  }
  value out{value::object{}};
  for (int k = 0; k < work_kinds; ++k)
    if (by_kind[static_cast<std::size_t>(k)] > 0)
      out.set(std::string(name(static_cast<work_kind>(k))) + "_s", by_kind[static_cast<std::size_t>(k)]);
  if (run.outcome.end_s > busy) out.set("idle_s", run.outcome.end_s - busy);
  out.set("makespan_s", run.outcome.end_s);
  return out;
}

}  // namespace

void add_inference_sections(result& r, const platform& p, const inference_workload& w, const inference_run& run,
                            const timeline& times) {
  const inference_metrics i = measure_inference(run, times);
  set_inference_metrics(
      r, p, w, i, run.memory,
      {gpu_energy(p, run.work, times), times.makespan, i.output_tokens_per_s * times.makespan.base()});
  r.breakdown.set("mean_over_gpus", iteration_breakdown(run.work, times));
}

void add_serving_sections(result& r, const platform& p, const inference_workload& w, const serving_run& run) {
  const inference_metrics i = measure_serving(run, w);
  const serving_outcome& o = run.outcome;
  const double gpus = w.gpus();
  joules all;
  double busy = 0;  // GPU seconds
  for (const iteration_use& u : run.uses) {
    all += u.work.power * seconds::from_base(u.seconds * u.gpus);
    busy += u.seconds * u.gpus;
  }
  all += p.gpu.idle_power * seconds::from_base(o.end_s * gpus - busy);
  set_inference_metrics(r, p, w, i, run.memory,
                        {all, seconds::from_base(o.end_s), static_cast<double>(o.output_tokens)});
  value& m = r.metrics;
  m.set("offered_requests_per_s", optional_number(i.offered_requests_per_s));
  m.set("requests_in_flight", i.requests_in_flight);
  m.set("measured_requests", i.measured_requests);
  m.set("slo_attained_fraction", optional_number(i.slo_attained_fraction));
  m.set("prefix_cache_hit_fraction", i.prefix_cache_hit_fraction);
  m.set("preemptions", i.preemptions);
  m.set("recomputed_tokens", o.recomputed_tokens);
  r.breakdown.set("mean_over_gpus", use_breakdown(run, gpus));
  constexpr double steady =
      0.9;  // below this, completions lag so far behind arrivals that the rates are unreliable
  const double offered = i.offered_requests_per_s.value_or(0);
  if (i.requests_per_s < steady * offered)
    r.notes.push_back(
        fmt::format("{:.4g} req/s complete while {:.4g} req/s arrive: the run is short compared with its "
                    "latencies, or the load exceeds the capacity; use more requests",
                    i.requests_per_s, offered));
  const auto [from, to] = counted_time(o, w);
  constexpr double few_lives =
      2;  // in request latencies; in shorter windows, completions of requests that started together dominate
  if (offered > 0 && to - from < few_lives * i.e2e_s.mean)
    r.notes.push_back(
        fmt::format("rates cover {:.4g} s, but a request takes {:.4g} s: the run is too short; use more requests",
                    to - from, i.e2e_s.mean));
  if (i.still_fills && !i.saturated)
    r.notes.push_back(
        fmt::format("the number of requests in flight is still growing: {} halfway, {} at the last arrival; a "
                    "longer run may show worse latencies and rates",
                    o.at_half.in_flight, o.at_last.in_flight));
  if (i.saturated) {
    r.status = run_status::saturated;
    r.reasons.push_back(
        fmt::format("requests arrive faster than they are served: {} of {} are queued at the last arrival; "
                    "latencies grow with the length of the run",
                    o.at_last.waiting, o.requests.size()));
  }
  if (w.objective.any())
    r.notes.push_back(fmt::format(
        "the objective is {}: {:.4g} % of the requests are within every limit; each limit requires {:.4g} %",
        i.objective_met ? "met" : "missed", 100 * *i.slo_attained_fraction, 100 * w.objective.share));
}

}  // namespace nvlsim
