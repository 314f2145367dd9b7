#include "nvlsim/run/run.hpp"

#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/sections.hpp"
#include "nvlsim/compute/compute.hpp"
#include "nvlsim/plan/leaf_uplinks.hpp"
#include "nvlsim/run/plausibility.hpp"
#include "nvlsim/run/serving_bands.hpp"
#include "nvlsim/run/step_bands.hpp"
#include "nvlsim/serving/serving_notes.hpp"
#include "nvlsim/serving/worker_health.hpp"
#include "nvlsim/simulator/serving_actors.hpp"
#include "nvlsim/simulator/simulation.hpp"
#include "nvlsim/training/idle_settings.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/version.hpp"
#include "run/facility_run.hpp"
#include "run/operation_run.hpp"
#include "run/post_training_run.hpp"
#include "run/shared_run.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t links_shown = 12;

/// Bytes through shared up-links, by job: the classes of a job are named "JOB: CLASS".
value by_job(const plan& p, const link_use& u) {
  std::map<std::string, double> bytes_of;
  for (const auto& [c, sent] : u.by_class) {
    const std::string& name = p.classes[static_cast<std::size_t>(c)].name;
    bytes_of[name.substr(0, name.find(": "))] += sent.base();
  }
  value out{value::object{}};
  for (const auto& [name, sent] : bytes_of) out.set(name, sent);
  return out;
}

/// Adds the busiest ports if traffic shared ports.
void add_links(run_record& out, const platform& hardware) {
  out.links = links_used(out.planned, out.times, hardware);
  value list{value::array{}};
  for (const link_use& u : out.links) {
    if (list.items()->size() == links_shown) break;
    value x{value::object{}};
    const auto class_name = [&](std::int32_t c) { return out.planned.classes[static_cast<std::size_t>(c)].name; };
    x.set("name", u.rank_class < 0 ? u.name : fmt::format("{}: {}", class_name(u.rank_class), u.name));
    x.set("mean_share", u.mean);
    x.set("peak_share", u.peak);
    x.set("carried_bytes", u.carried.base());
    x.set("busiest", u.busiest);
    if (!u.by_class.empty()) x.set("by_job_bytes", by_job(out.planned, u));
    x.set("reason",
          fmt::format("{:.0f} % {}, peak {:.0f} %", 100 * (u.of_busiest / u.carried), u.busiest, 100 * u.peak));
    list.items()->push_back(std::move(x));
  }
  out.outcome.breakdown.set("links", std::move(list));
}

timeline times_of(const plan& planned, const platform& hardware, const scenario& s, const run_options& o) {
  const bool longest_path = !o.simulate && s.simulation.network == fidelity::closed;
  return longest_path ? evaluate(planned) : simulate(planned, hardware, {s.simulation.network});
}

/// Adds the source of the GPU price, on which all costs depend.
void add_price_source(result& r, const scenario& s) {
  const constants_unrecorded input;  // the price as it was given
  if (!s.platform.price.per_gpu) return;
  const auto known = constant_at(s, "/platform/price/per_gpu");
  const bool sourced = known && !known->kind.empty();
  r.cost.set("price_usd_per_h", s.platform.price.per_gpu->base() * 3600);
  r.cost.set("price_kind", sourced ? known->kind : "assumed");
  r.cost.set("price_source", sourced ? known->source : known ? known->from : "the scenario");
}

/// What the facility allows, or that it cannot be kept.
limited_scenario limits_of(result& r, const scenario& s) {
  if (!s.facility) return {};
  limited_scenario out = limited_by_facility(s);
  if (!out.impossible.empty()) r.reasons.push_back(out.impossible);
  return out;
}

/// Power of the step at its site. A step that a cap lengthens is compared with that of `asked`.
std::optional<step_power> power_at_site(const run_record& ran, const scenario& asked,
                                        const limited_scenario& limits, const run_options& o) {
  if (!asked.facility) return std::nullopt;
  const auto& w = std::get<training_workload>(asked.workload);
  if (!limits.capped) return power_of_step(asked, w, ran, {});
  const plan uncapped = plan_training(asked.platform, asked.stack, asked.model, w, asked.simulation.fold);
  return power_of_step(*limits.capped, w, ran, times_of(uncapped, asked.platform, asked, o).makespan);
}

/// Says by how much the overlap of the expert exchange slows a step: in 8 bits or fewer without CUDA graphs its
/// nodes may cost the host more than the exchange that they hide. [docs/models-and-assumptions.md#schedule-nodes]
void add_cost_of_overlap(result& r, const scenario& s, const training_workload& w) {
  if (!w.moe_overlap || w.graphs != cuda_graphs::none || bytes_per_element(w.gemm_precision) >= 2) return;
  if (!has_routed_experts(s.model)) return;
  const constants_unrecorded compared;
  training_workload without = w;
  without.moe_overlap = false;
  const auto step = [&](const training_workload& of) {
    return evaluate(plan_training(s.platform, s.stack, s.model, of)).makespan;
  };
  const double slower = step(w) / step(without) - 1;
  constexpr double least = 0.005;  // what rounds to a per cent
  if (slower > least)
    r.notes.push_back(fmt::format(
        "overlap_moe_expert_parallel_comm slows this step by {:.0f} %: its schedule costs the host more "
        "than the exchange takes; CUDA graphs or larger micro-batches change that",
        100 * slower));
}

/// Whether anything of a plan crosses up-links that limit.
bool crosses_uplinks(const plan& p, const platform& hardware) {
  const constants_unrecorded text;
  return uplinks_limit(hardware) &&
         std::any_of(p.templates.begin(), p.templates.end(), [](const operation_template& t) {
           return std::any_of(t.network.begin(), t.network.end(), [](const network_demand& d) {
             return d.traffic.uplink != port_bytes{} || d.traffic.pod != port_bytes{};
           });
         });
}

void run_training(run_record& out, const scenario& asked, const training_workload& w, const run_options& o) {
  result& r = out.outcome;
  const limited_scenario limits = limits_of(r, asked);
  if (!r.reasons.empty()) return;
  const scenario& s = limits.capped ? *limits.capped : asked;
  r.reasons = training_problems(s.platform, s.model, w);
  if (r.reasons.empty()) r.reasons = format_problems(s.platform, s.stack, w);
  if (r.reasons.empty() && s.simulation.network == fidelity::flow) r.reasons = flow_problems(passes_of(w));
  if (r.reasons.empty()) {
    const memory_report memory = training_memory(s.platform, s.stack, s.model, w);
    r.memory = memory_section(memory);
    if (memory.refused()) {
      r.reasons.push_back(too_large(memory));
    } else {
      if (memory.tight()) r.notes.push_back(tight_fit(memory));
      out.planned = plan_training(s.platform, s.stack, s.model, w, s.simulation.fold);
      out.times = times_of(out.planned, s.platform, s, o);
      for (std::string& n : idle_settings(s.model, w)) r.notes.push_back(std::move(n));
      for (std::string& n : unpriced_work(s.model, w)) r.notes.push_back(std::move(n));
      add_cost_of_overlap(r, s, w);
      const std::optional<step_power> power = power_at_site(out, asked, limits, o);
      const std::optional<site_of_step> site =
          power ? std::optional(site_of_step{*s.facility, power->figures}) : std::nullopt;
      if (s.simulation.network == fidelity::flow)
        r.notes.push_back("flow: pipeline sends, data-parallel traffic and collectives inside passes share ports");
      else if (crosses_uplinks(out.planned, s.platform))
        r.notes.push_back(
            "closed: operations that use the up-links of a leaf at the same time do not slow each other; "
            "fidelity flow has them share");
      add_training_sections(r, {s.platform, s.model, w, out.planned, out.times, memory, site ? &*site : nullptr},
                            step_band_of(s));
      if (power) add_facility(out, s, limits, &*power);
      if (w.token_budget) add_price_source(r, s);
      if (s.simulation.network == fidelity::flow) add_links(out, s.platform);
    }
  }
}

/// Adds bands for serving metrics with known errors: mean and median latencies, and rates that the engine rather
/// than the arrivals determines.
void add_serving_bands(result& r, const scenario& s, const inference_workload& w) {
  const constants_unrecorded errors;
  const error_widths widths = band_of(s).widths;
  const auto add = [&](const std::string& metric, const value* v, double width) {
    if (!v || !v->number() || !(width > 0)) return;
    r.bands.set(metric, value{value::array{value{*v->number() * std::exp(-width)},
                                           value{*v->number() * std::exp(width)}}});
  };
  const auto add_numbers = [&](metric_band which, double width) {
    for (const metric& m : metrics_of(metric_kind::inference))
      if (m.band == which && !m.is_distribution) add(std::string(m.name), r.metrics.find(m.name), width);
  };
  for (const metric& m : metrics_of(metric_kind::inference))
    for (const char* statistic : {"mean", "p50"})
      if (const value* d = r.metrics.find(m.name); d && d->members() && m.band != metric_band::none)
        add(fmt::format("{}.{}", m.name, statistic), d->find(statistic),
            m.band == metric_band::ttft ? widths.ttft : widths.tpot);
  add_numbers(metric_band::tpot, widths.tpot);
  if (w.load == load_kind::open_loop || w.load == load_kind::trace) return;
  // In a closed loop rates are proportional to the inverse of TPOT.
  const double rates = w.load == load_kind::closed_loop ? widths.tpot : widths.throughput;
  add_numbers(metric_band::throughput, rates);
  add_numbers(metric_band::whole_run, rates);
}

void add_idle_settings(result& r, const scenario& s, const inference_workload& w) {
  const constants_unrecorded texts;
  for (std::string& n : idle_settings(s.stack, s.model, w)) r.notes.push_back(std::move(n));
}

serving_options options_for(const scenario& s, const run_options& o) {
  serving_options out{.explained = o.explained,
                      .traced = o.traced,
                      .traffic = s.simulation.network != fidelity::closed,
                      .fold = s.simulation.fold};
  if (o.simulate || s.simulation.network != fidelity::closed)
    out.play = [&s](const std::vector<server_case>& cases) {
      return serve_by_actors(cases, s.platform, {s.simulation.network});
    };
  return out;
}

void run_inference(run_record& out, const scenario& asked, const inference_workload& w, const run_options& o) {
  result& r = out.outcome;
  const limited_scenario limits = limits_of(r, asked);
  if (!r.reasons.empty()) return;
  const scenario& s = limits.capped ? *limits.capped : asked;
  serving_run run = serve(s.platform, s.stack, s.model, w, options_for(s, o));
  r.memory = memory_section(run.memory);
  r.reasons = std::move(run.reasons);
  r.notes = std::move(run.notes);
  if (w.load == load_kind::trace && w.requests > static_cast<std::int64_t>(w.replay->list.requests.size()))
    r.notes.push_back(fmt::format("the trace has only {} of the {} requests asked for",
                                  w.replay->list.requests.size(), w.requests));
  if (!r.reasons.empty()) return;
  if (s.simulation.network == fidelity::closed && w.pooled() && workers_of(w, true) > workers_of(w, false))
    r.notes.push_back(
        "closed: KV caches for the same decode worker do not slow each other; fidelity flow has them share its "
        "port");
  add_idle_settings(r, s, w);
  add_inference_sections(r, s.platform, w, run, s.facility.get());
  add_serving_bands(r, s, w);
  if (s.facility) add_facility(out, s, limits, nullptr);
  if (!o.traced) return;
  serving_picture picture = trace_serving(run, w, o.explained);
  out.planned = std::move(picture.planned);
  out.times = std::move(picture.times);
  out.times.activities = run.activities;
  out.counters = std::move(picture.counters);
  out.batches = std::move(picture.batches);
  const auto& workers = run.outcome.workers;
  if (std::any_of(workers.begin(), workers.end(), [](const worker_record& l) {
        return l.iterations.size() < static_cast<std::size_t>(l.iterations_in_all);
      }))
    out.left_out = fmt::format("iterations after the first {}", traced_iterations);
  out.counted = counted_time(run.outcome, w);
  out.counted_arrivals = counted_arrivals(run.outcome, w.measured);
  out.requests = std::move(run.outcome.requests);
  out.front_end = run.front_end;
  out.cache = cache_use_of(run);
  out.tokens_per_step = w.drafts.tokens_per_step;
  if (s.simulation.network == fidelity::flow) add_links(out, s.platform);
}

void run_collective(run_record& out, const scenario& s, const collective_workload& w, const run_options& o) {
  result& r = out.outcome;
  r.reasons = collective_problems(s.platform, w);
  if (!r.reasons.empty()) return;
  collective_run run = plan_collective(s.platform, s.stack, w, s.simulation.network, s.simulation.fold);
  out.times = times_of(run.planned, run.hardware, s, o);
  add_collective_sections(r, w, run, out.times.makespan);
  out.planned = std::move(run.planned);
  if (s.simulation.network != fidelity::closed) add_links(out, run.hardware);
}

void run_jobs(run_record& out, const scenario& s, const shared_workload& w) {
  const platform fabric = run_shared(out, s, w);
  if (!out.outcome.reasons.empty()) return;
  out.outcome.notes.push_back(
      "GPUs without a job or background traffic are idle; a job alone runs on the same leaves as beside the "
      "others");
  add_links(out, fabric);
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

/// Runs what the scenario's inputs say.
run_record run_told(const scenario& s, const run_options& options) {
  const auto begin = std::chrono::steady_clock::now();
  std::optional<constant_recorder> recorder;
  if (options.explained) recorder.emplace();
  run_record out;
  out.outcome.name = s.name;
  out.outcome.inputs = s.inputs;
  const auto* collective = std::get_if<collective_workload>(&s.workload);
  if (collective) run_collective(out, s, *collective, options);
  else if (const auto* t = std::get_if<training_workload>(&s.workload)) run_training(out, s, *t, options);
  else if (const auto* i = std::get_if<inference_workload>(&s.workload)) run_inference(out, s, *i, options);
  else if (const auto* cluster = std::get_if<operation_case>(&s.workload))
    run_operation(out, s, *cluster, options);
  else if (const auto* loop = std::get_if<post_training_case>(&s.workload))
    run_post_training(out, s, *loop, options.simulate);
  else run_jobs(out, s, std::get<shared_workload>(s.workload));
  if (!out.outcome.reasons.empty() && out.outcome.status == run_status::ok)
    out.outcome.status = run_status::infeasible;
  const bool one_stack = std::holds_alternative<training_workload>(s.workload) ||
                         std::holds_alternative<inference_workload>(s.workload);
  if (one_stack && out.outcome.status != run_status::infeasible) {
    const constants_unrecorded texts;
    if (std::string note = kernels_note(s.stack, s.platform.gpu); !note.empty())
      out.outcome.notes.push_back(std::move(note));
    if (!s.platform.price.per_gpu) out.outcome.notes.push_back("cost is unknown: " + s.platform.price.note);
  }
  mark_impossible(out.outcome);
  if (recorder) out.constants_read = recorder->names();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  out.outcome.simulation.set("version", version);
  out.outcome.simulation.set("wall_s", wall.count());
  out.outcome.simulation.set("peak_memory_bytes", peak_resident_bytes());
  out.outcome.simulation.set("activities", out.times.activities);
  return out;
}

}  // namespace

run_record run_scenario(const scenario& s, const run_options& options) {
  const std::optional<scenario> changed = told(s);
  return run_told(changed ? *changed : s, options);
}

}  // namespace nvlsim
