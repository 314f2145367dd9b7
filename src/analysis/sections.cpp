#include "nvlsim/analysis/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/job_energy.hpp"
#include "nvlsim/analysis/job_sections.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/training_metrics.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {

std::string_view name(run_status s) {
  static constexpr std::array<std::string_view, 4> names = {"ok", "saturated", "infeasible", "error"};
  return names[static_cast<std::size_t>(s)];
}

value memory_section(const memory_report& m) {
  value items{value::array{}};
  for (const memory_item& i : m.items) {
    value x{value::object{}};
    x.set("name", i.name);
    x.set("bytes", i.size.base());
    if (i.tokens) {
      x.set("tokens", *i.tokens);
      x.set("token_bytes", i.size.base() / static_cast<double>(*i.tokens));
    }
    x.set("reason", i.reason);
    items.items()->push_back(std::move(x));
  }
  value out{value::object{}};
  out.set("where", m.where);
  out.set("peak_bytes", m.peak.base());
  out.set("usable_bytes", m.usable.base());
  if (m.error > 0) {
    out.set("allocated_bytes", m.allocated.base());
    out.set("margin_bytes", (m.usable - m.peak).base());
    out.set("error", m.error);
    out.set("fit", m.refused() ? "no" : m.tight() ? "tight" : "yes");
  }
  out.set("items", std::move(items));
  return out;
}

std::string tight_fit(const memory_report& m) {
  const double free = 1 - m.peak / m.usable;
  return fmt::format(
      "memory is tight: {} needs {} of {} usable, {:.1f} % {}; the estimate errs by up to {:g} %, so it {}",
      m.where, format_quantity(m.peak), format_quantity(m.usable), 100 * std::abs(free),
      free >= 0 ? "free" : "too much", 100 * m.error, free >= 0 ? "may not fit" : "may still fit");
}

std::string too_large(const memory_report& m) {
  if (m.offloaded > m.offload_room && m.peak <= m.usable)
    return fmt::format("{} offloads {} of activations to CPU memory; a GPU's share of CPU memory is {}", m.where,
                       format_quantity(m.offloaded), format_quantity(m.offload_room));
  std::string text = fmt::format("{} needs {} of GPU memory and {} are usable:", m.where, format_quantity(m.peak),
                                 format_quantity(m.usable));
  for (const memory_item& i : m.items) text += fmt::format(" {} {},", i.name, format_quantity(i.size));
  text.pop_back();
  return text;
}

namespace {

value stage_section(const stage_breakdown& b, seconds step) {
  value out{value::object{}};
  const auto put = [&](std::string_view key, seconds t) {
    if (t > seconds{}) out.set(std::string(key) + "_s", t.base());
  };
  for (int k = 0; k < part_kinds; ++k) put(name(static_cast<part_kind>(k)), b.busy[static_cast<std::size_t>(k)]);
  put("waiting_data_parallel", b.waiting_data_parallel);
  put("waiting_sends", b.waiting_sends);
  put("waiting_collectives", b.waiting_collectives);
  put("bubble", b.waiting_pipeline);
  out.set("step_time_s", step.base());
  return out;
}

/// The time within its error, and what is in proportion to it or to its inverse.
void add_time_bands(result& r, metric_kind kind, double low, double high) {
  const auto add = [&](metric_band which, double from, double to) {
    for (const metric& m : metrics_of(kind)) {
      const value* v = m.band == which ? r.metrics.find(m.name) : nullptr;
      if (v && v->number())
        r.bands.set(m.name, value{value::array{value{*v->number() * from}, value{*v->number() * to}}});
    }
  };
  add(metric_band::with_time, low, high);
  if (low > 0) add(metric_band::against_time, 1 / high, 1 / low);
}

void add_energy(result& r, const job_energy& e) {
  r.energy.set("gpus_J", e.gpus.base());
  r.energy.set("cpus_J", e.cpus.base());
  r.energy.set("trays_and_switches_J", e.trays_and_switches.base());
  r.energy.set("supply_losses_J", e.supply_losses.base());
}

}  // namespace

void add_training_sections(result& r, const finished_step& s, step_band band) {
  const auto& [p, net, w, planned, times, memory, site] = s;
  training_metrics t = measure_training(p, net, w, planned, times);
  if (site)
    t.site = figures_of(site->facility, {t.energy.total(), static_cast<double>(t.gpus), t.step_time}, site->power);
  t.memory_peak = memory.peak;
  set_metrics(r.metrics, t);
  if (band.known()) add_time_bands(r, metric_kind::training, band.low, band.high);
  r.breakdown.set("mean_over_gpus", stage_section(t.mean, t.step_time));
  value stages{value::object{}};
  const auto all = stage_breakdowns(planned, times, p.gpu);
  if (all.size() <= 64)
    for (std::size_t c = 0; c < all.size(); ++c)
      stages.set(planned.classes[c].name, stage_section(all[c], t.step_time));
  r.breakdown.set("by_stage", std::move(stages));
  add_energy(r, t.energy);
  r.energy.set("per_token_J", t.energy.total().base() / t.tokens_per_step);
  r.cost.set("per_step_usd", t.cost ? value{t.cost->base()} : value{});
  r.cost.set("per_million_tokens_usd", t.cost ? value{t.cost->base() / t.tokens_per_step * 1e6} : value{});
}

namespace {

/// Energy and cost of a served load whose GPUs took `gpu_energy` over `makespan`.
served_metrics with_totals(inference_metrics seen, const platform& p, const inference_workload& w,
                           joules gpu_energy, seconds makespan) {
  served_metrics out;
  out.seen = std::move(seen);
  out.gpus = w.gpus();
  out.makespan = makespan;
  out.energy = energy_of_job(p, gpu_energy, out.gpus, makespan);
  if (p.price.per_gpu) out.cost = *p.price.per_gpu * makespan * static_cast<double>(out.gpus);
  return out;
}

void add_served(result& r, const served_metrics& m) {
  set_metrics(r.metrics, m);
  add_energy(r, m.energy);
  r.cost.set("run_usd", m.cost ? value{m.cost->base()} : value{});
}

/// Seconds by kind of work, for the mean GPU.
value use_breakdown(const serving_run& run, double gpus) {
  std::array<double, part_kinds> by_kind{};
  double busy = 0;
  for (const iteration_use& u : run.uses) {
    const double share = u.gpus / gpus;
    for (const operation_part& part : u.operation.parts)
      by_kind[static_cast<std::size_t>(part.kind)] +=
          part.duration / u.operation.duration * part.repeat * u.seconds * share;
    busy += u.seconds * share;
  }
  value out{value::object{}};
  for (int k = 0; k < part_kinds; ++k)
    if (by_kind[static_cast<std::size_t>(k)] > 0)
      out.set(std::string(name(static_cast<part_kind>(k))) + "_s", by_kind[static_cast<std::size_t>(k)]);
  constexpr double rounding = 1e-12;
  if (run.outcome.end_s > busy * (1 + rounding)) out.set("idle_s", run.outcome.end_s - busy);
  out.set("makespan_s", run.outcome.end_s);
  return out;
}

/// What each tier of KV caches gave, and the share of all prompt tokens that it saved.
value tier_breakdown(const serving_run& run, const inference_workload& w) {
  constexpr std::array names = {"cpu", "nvme", "pool"};
  double prompts = 0, hits = 0, fetched = 0;
  for (const request_record& q : run.outcome.requests) {
    prompts += static_cast<double>(q.workers) * q.input;
    hits += static_cast<double>(q.workers) * q.cached;
    fetched += static_cast<double>(q.workers) * q.fetched;
  }
  value out{value::array{}};
  const auto add = [&](const char* name, double tokens) {
    value one{value::object{{"tier", name}, {"tokens", tokens}, {"hit_fraction", tokens / prompts}}};
    out.items()->push_back(std::move(one));
  };
  add("hbm", hits - fetched);
  // What was fetched in vain, because others computed it or what lies before it went meanwhile, saves nothing.
  double all = 0;
  for (const std::int64_t n : run.outcome.tier_blocks) all += static_cast<double>(n * run.prefix_tokens);
  for (std::size_t k = 0; k < run.outcome.tier_blocks.size(); ++k)
    add(names[static_cast<std::size_t>(w.tiers[k].kind)],
        all > 0 ? static_cast<double>(run.outcome.tier_blocks[k] * run.prefix_tokens) * (fetched / all) : 0);
  return out;
}

/// Status and notes of a load: whether it is long enough, saturated, and meets its objective. A run that is too
/// short has the status of a server that is saturated: longer ones have other rates.
void judge_load(result& r, const serving_run& run, const inference_workload& w, const inference_metrics& i) {
  const serving_outcome& o = run.outcome;
  constexpr double steady = 0.9;  // below, what finishes while requests arrive says little
  const double offered = i.offered_requests_per_s.value_or(0);
  if (i.requests_per_s < steady * offered)
    r.notes.push_back(
        fmt::format("{:.4g} req/s complete while {:.4g} req/s arrive: the run is short compared with its "
                    "latencies, or the load exceeds the capacity; use more requests",
                    i.requests_per_s, offered));
  const auto [from, to] = counted_time(o, w);
  if (w.measured.steady && from > 0)
    r.notes.push_back(
        fmt::format("rates and latencies cover {:.4g} to {:.4g} s, when every client has finished its first {} "
                    "and none its last",
                    from, to, w.sessions ? "session" : "request"));
  for (std::string& why : too_short(o, w, i)) {
    r.status = run_status::saturated;
    r.reasons.push_back(std::move(why));
  }
  if (i.still_fills && !i.saturated)
    r.notes.push_back(
        fmt::format("the number of requests in flight is still growing: {} halfway, {} at the last arrival; a "
                    "longer run may show worse latencies and rates",
                    o.at_half.in_flight, o.at_last.in_flight));
  const bool is_short = r.status == run_status::saturated;
  if (i.saturated) {
    r.status = run_status::saturated;
    r.reasons.push_back(
        fmt::format("requests arrive faster than they are served: {} of {} are queued at the last arrival; "
                    "latencies grow with the length of the run",
                    o.at_last.waiting, o.requests.size()));
  }
  if (w.objective.any())
    r.notes.push_back(fmt::format("the objective is {}: {:.4g} % of the requests are within every limit; {}",
                                  is_short          ? "not judged, because the run is too short"
                                  : i.objective_met ? "met"
                                                    : "missed",
                                  100 * *i.slo_attained_fraction,
                                  w.objective.means ? std::string("their means must be")
                                  : w.objective.percentiles.empty()
                                      ? fmt::format("each limit requires {:.4g} %", 100 * w.objective.share)
                                      : std::string("each limit requires its own percentile")));
}

}  // namespace

served_metrics measure_served(const platform& p, const inference_workload& w, const serving_run& run,
                              const facility_spec* site) {
  const serving_outcome& o = run.outcome;
  const double gpus = w.gpus();
  joules all;
  double busy = 0;  // GPU seconds
  for (const iteration_use& u : run.uses) {
    all += u.operation.power * seconds::from_base(u.seconds * u.gpus);
    busy += u.seconds * u.gpus;
  }
  all += p.gpu.idle_power * seconds::from_base(o.end_s * gpus - busy);
  served_metrics m = with_totals(measure_inference(run, w), p, w, all, seconds::from_base(o.end_s));
  m.output_tokens = static_cast<double>(o.output_tokens);
  m.peak_kv_tokens = cache_use_of(run).peak_tokens;
  use_memory_of(m, run);
  m.recomputed_tokens = o.recomputed_tokens;
  if (site) m.site = figures_of(*site, {m.energy.total(), gpus, m.makespan}, {});
  return m;
}

void use_memory_of(served_metrics& m, const serving_run& run) {
  m.memory_peak = run.memory.peak;
  m.seen.kv_cache_used_fraction =
      static_cast<double>(m.peak_kv_tokens) / static_cast<double>(run.kv_capacity_tokens);
}

void add_inference_sections(result& r, const platform& p, const inference_workload& w, const serving_run& run,
                            const facility_spec* site) {
  const serving_outcome& o = run.outcome;
  const served_metrics m = measure_served(p, w, run, site);
  add_served(r, m);
  r.breakdown.set("mean_over_gpus", use_breakdown(run, w.gpus()));
  if (!o.tier_blocks.empty()) r.breakdown.set("cache_tiers", tier_breakdown(run, w));
  judge_load(r, run, w, m.seen);
}

void add_collective_sections(result& r, const collective_workload& w, const collective_run& run, seconds time) {
  set_metrics(r.metrics,
              collective_metrics{time, w.size, bus_factor(w.operation, static_cast<int>(w.gpus)), w.gpus});
  const seconds latency = std::min(run.demand.latency, time);
  const network_traffic& t = run.demand.traffic;
  r.breakdown.set("algorithm", run.cost.algorithm);
  r.breakdown.set("latency_s", latency.base());
  r.breakdown.set("transfer_s", (time - latency).base());
  r.breakdown.set("nvlink_sent_bytes", t.nvlink.out.base());
  r.breakdown.set("nvlink_received_bytes", t.nvlink.in.base());
  r.breakdown.set("nic_sent_bytes", t.nic.out.base());
  r.breakdown.set("nic_received_bytes", t.nic.in.base());
  if (run.spread && time > seconds{})
    add_time_bands(r, metric_kind::collective, run.spread->low, run.spread->high);
  if (run.cost.derived)
    r.notes.push_back("some parameters of this collective are derived from hardware figures, not measured");
}

/// Members of a server's times, such as `ttft_alone_s`.
static void add_served_times(value& to, const char* suffix, const std::optional<served_times>& t) {
  if (!t) return;
  to.set(fmt::format("e2e{}_s", suffix), t->request.base());
  to.set(fmt::format("ttft{}_s", suffix), t->first_token.base());
  if (t->per_token) to.set(fmt::format("tpot{}_s", suffix), t->per_token->base());
}

namespace {

/// A slowdown without the rounding of two times that are the same.
double without_rounding(double slowdown) {
  constexpr double rounding = 1e-9;
  return std::abs(slowdown - 1) < rounding ? 1 : slowdown;
}

}  // namespace

void add_jobs_sections(result& r, const std::vector<shared_job>& jobs, seconds makespan) {
  shared_metrics m;
  m.makespan = makespan;
  value list{value::array{}};
  for (const shared_job& j : jobs) {
    const double slowdown = without_rounding(j.slowdown());
    m.slowdowns.push_back(slowdown);
    m.gpus += j.gpus;
    value one{value::object{{"name", j.name}, {"kind", j.kind}, {"gpus", j.gpus}, {"start_s", j.start.base()}}};
    if (j.repeat > 1) one.set("repeat", j.repeat);
    one.set("time_s", j.time.base());
    one.set("alone_s", j.alone.base());
    one.set("slowdown", slowdown);
    if (j.exposed) one.set("exposed_communication_s", j.exposed->base());
    if (j.exposed_alone) one.set("exposed_communication_alone_s", j.exposed_alone->base());
    add_served_times(one, "", j.served);
    add_served_times(one, "_alone", j.served_alone);
    if (j.served) {
      one.set("status", name(j.own.status));
      one.set("metrics", j.own.metrics);
    }
    for (const auto* said : {&j.own.reasons, &j.own.notes})
      for (const std::string& what : *said) r.notes.push_back(fmt::format("{}: {}", j.name, what));
    one.set("reason", fmt::format("{} on {} GPUs, alone {:.6g} s, {:.4g} times that", j.kind, j.gpus,
                                  j.alone.base(), slowdown));
    list.items()->push_back(std::move(one));
  }
  set_metrics(r.metrics, m);
  r.breakdown.set("jobs", std::move(list));
}

}  // namespace nvlsim
