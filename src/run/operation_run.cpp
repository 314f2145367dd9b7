#include "run/operation_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/engine/operation_actors.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/run/run.hpp"
#include "run/facility_run.hpp"
#include "run/fleet_run.hpp"
#include "run/queue_run.hpp"

namespace nvlsim {
namespace {

const training_workload& workload_of(const cluster_job& j) {
  return std::get<training_workload>(j.alone->workload);
}

/// A step of the job on hardware of which some is degraded; null time if it cannot run.
struct step_price {
  seconds time;
  result outcome;
};
step_price price_step(const cluster_job& j, const std::vector<degradation>& degraded) {
  scenario s = *j.alone;
  auto& w = std::get<training_workload>(s.workload);
  w.degraded.insert(w.degraded.end(), degraded.begin(), degraded.end());
  step_price out{{}, run_scenario(s, {.simulate = false}).outcome};
  if (out.outcome.status == run_status::ok)
    out.time = seconds::from_base(*out.outcome.metrics.find("step_time_s")->number());
  return out;
}

/// The trays that the job's placement fills.
tray_request trays_for(const platform& p, const training_workload& w) {
  const std::int64_t in_rack = std::min<std::int64_t>(w.place.gpus_per_domain, p.gpus_per_rack());
  const std::int64_t each = p.vm.gpus, per_rack = (in_rack + each - 1) / each, gpus = w.par.gpus();
  return {gpus / in_rack * per_rack + (gpus % in_rack + each - 1) / each, per_rack};
}

/// Where a degraded part of the job is: its first GPU, its first rack, or all of its racks.
degradation degraded_part(const component& c, const tray_request& asked) {
  degradation d;
  d.health = {c.degraded->speed, c.degraded->nvlink, c.degraded->nic};
  const std::int64_t racks = (asked.slots + asked.per_rack - 1) / asked.per_rack;
  if (c.takes_down <= cluster_part::tray) d.gpus = {{0, 0}};
  else if (c.takes_down == cluster_part::rack) d.racks = {{0, 0}};
  else d.racks = {{0, racks - 1}};
  return d;
}

operation_setup setup_of(const scenario& s, const operation_workload& o, const cluster_job& j, seconds step_time) {
  const training_operation& t = *o.training;
  const training_workload& w = workload_of(j);
  operation_setup out;
  out.cluster = {s.platform.racks, s.platform.rack.vms, s.platform.vm.gpus, t.racks_per_row};
  out.failures = scaled(t.failures, out.cluster);
  out.save = t.save;
  out.save.state = bytes::from_base(static_cast<double>(parameters(j.alone->model)) * t.bytes_per_parameter);
  if (!(t.save.to_host.peek() > bandwidth{})) out.save.to_host = s.platform.gpu.c2c;
  out.recovery = t.recovery;
  out.maintenance = t.maintenance;
  out.asked = trays_for(s.platform, w);
  out.replicas = t.replicas.value_or(w.par.dp);
  out.step_time = step_time;
  out.duration = o.duration;
  const double tokens = static_cast<double>(w.global_batch_size * w.seq_length);
  if (w.token_budget) out.work = step_time * (*w.token_budget / tokens);
  for (component& c : out.failures.components)
    if (c.degraded) c.speed = step_time / price_step(j, {degraded_part(c, out.asked)}).time;
  return out;
}

/// More failures than this take minutes to play.
constexpr double most_failures = 1e8;

std::vector<std::string> setup_problems(const operation_setup& s, std::int64_t seeds) {
  std::vector<std::string> out;
  double a_day = 0;
  for (const component& c : s.failures.components)
    a_day += failures_per_day(c, s.cluster, s.asked.slots * s.cluster.gpus_per_tray);
  if (const double all = a_day * s.duration.base() / 86400 * static_cast<double>(seeds); all > most_failures)
    out.push_back(
        fmt::format("{:.2g} failures are too many to play, {:.0f} a day on this cluster; give a longer mtbf, "
                    "fewer seeds or a shorter duration",
                    all, a_day));
  if (s.recovery.min_replicas > s.replicas)
    out.push_back(
        fmt::format("the job has {} replicas, of which {} have to be there", s.replicas, s.recovery.min_replicas));
  if (s.replicas > s.asked.slots * s.cluster.gpus_per_tray)
    out.push_back(
        fmt::format("{} replicas do not fit on {} GPUs", s.replicas, s.asked.slots * s.cluster.gpus_per_tray));
  return out;
}

void add_notes(result& r, const operation_study& s, const training_tally& t) {
  const auto racks_of_job = (s.setup.asked.slots + s.setup.asked.per_rack - 1) / s.setup.asked.per_rack;
  if (s.setup.asked.per_rack == s.setup.cluster.trays_per_rack && racks_of_job == s.setup.cluster.racks)
    r.notes.push_back("the job uses every tray of every rack: each broken tray stops it until the repair");
  if (s.setup.save.interval && t.interval > *s.setup.save.interval * (1 + 1e-9))
    r.notes.push_back(
        fmt::format("saves are {:.0f} s apart, not {:.0f} s: a copy takes that long to reach its place",
                    t.interval.base(), s.setup.save.interval->base()));
  if (s.runs.size() < 10)
    r.notes.push_back(
        fmt::format("{} seed{}; give at least 10 for bands", s.runs.size(), s.runs.size() == 1 ? "" : "s"));
}

/// Actors keep the time of the first seed, a queue of events that of the others.
std::vector<operation_outcome> play(const operation_setup& setup, const scenario& s, std::int64_t seeds,
                                    bool actors) {
  std::vector<operation_outcome> out;
  for (std::int64_t i = 0; i < seeds; ++i) {
    const std::uint64_t seed = s.simulation.seed + static_cast<std::uint64_t>(i);
    out.push_back(i == 0 && actors ? run_operation_by_actors(setup, seed, s.platform) : run_by_queue(setup, seed));
  }
  return out;
}

/// The job's life with the first seed, as one stream: what it did from when to when, and why.
void add_picture(run_record& out, const operation_study& s, const std::string& job) {
  const auto& components = s.setup.failures.components;
  rank_class life{job, s.setup.asked.slots * s.setup.cluster.gpus_per_tray, {stream{}}};
  trace_counter done{0, "useful work (days)", {{0, 0}}};
  for (const operation_span& x : s.runs.front().spans) {
    const bool runs = x.use == gpu_use::useful;
    std::string name = runs ? "steps" : std::string(gpu_use_names[static_cast<std::size_t>(x.use)]);
    if (x.component >= 0) name += ": " + components[static_cast<std::size_t>(x.component)].name;
    operation_part part{runs ? part_kind::gemm : part_kind::idle, name, seconds::from_base(x.end - x.begin)};
    const std::int32_t t = out.planned.add_template({name, {std::move(part)}, {}, {}});
    out.planned.append(life.streams.front(), t, {});
    done.points.emplace_back(x.end, x.progress / 86400);
  }
  out.planned.classes.push_back(std::move(life));
  out.times = evaluate(out.planned);
  out.counters.push_back(std::move(done));
  if (s.runs.front().spans.size() == most_spans)
    out.left_out = fmt::format("stretches of the job's life after the first {}", most_spans);
}

void run_job(run_record& out, const scenario& s, const operation_case& c, operation_metrics& m, bool actors) {
  result& r = out.outcome;
  const cluster_job& job = c.jobs.front();
  const step_price step = price_step(job, {});
  if (step.outcome.status != run_status::ok) {
    for (const std::string& reason : step.outcome.reasons) r.reasons.push_back(job.name + ": " + reason);
    return;
  }
  const training_workload& w = workload_of(job);
  operation_study study{setup_of(s, *c.cluster, job, step.time), {}, 0, {}};
  r.reasons = setup_problems(study.setup, c.cluster->seeds);
  if (!r.reasons.empty()) return;
  study.tokens_per_step = static_cast<double>(w.global_batch_size * w.seq_length);
  if (s.platform.price.per_gpu) study.price = s.platform.price.per_gpu->read();
  study.runs = play(study.setup, s, c.cluster->seeds, actors);
  m.training = tally_of(study);
  for (const std::string& n : step.outcome.notes) r.notes.push_back(job.name + ": " + n);
  if (s.facility) m.site = site_of_months(r, s, *m.training, step.outcome);
  add_notes(r, study, *m.training);
  add_operation_sections(r, study, *m.training);
  add_picture(out, study, job.name);
}

}  // namespace

void run_operation(run_record& out, const scenario& s, const operation_case& c, const run_options& o) {
  operation_metrics m;
  m.duration = c.cluster->duration;
  m.gpus = s.platform.gpus();
  if (!c.jobs.empty()) run_job(out, s, c, m, o.simulate);
  if (c.fleet) run_fleet(out, s, c, m);
  if (c.cluster->queue) {
    m.queue = run_queue(s, *c.cluster);
    add_queue_sections(out.outcome, *m.queue);
  }
  if (out.outcome.reasons.empty()) set_metrics(out.outcome.metrics, m);
}

}  // namespace nvlsim
