#include "run/operation_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/analysis/cluster_metrics.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/run/operation_job.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/simulator/operation_actors.hpp"
#include "run/cluster_operation.hpp"
#include "run/facility_run.hpp"
#include "run/fleet_run.hpp"
#include "run/operation_setup.hpp"
#include "run/queue_run.hpp"

namespace nvlsim {
namespace {

void add_notes(result& r, const operation_study& s, const training_tally& t) {
  const auto racks_of_job = (s.setup.asked.slots + s.setup.asked.per_rack - 1) / s.setup.asked.per_rack;
  if (s.setup.asked.per_rack == s.setup.cluster.trays_per_rack && racks_of_job == s.setup.cluster.racks)
    r.notes.push_back("the job uses every tray of every rack, so each broken tray stops it until the repair");
  if (s.setup.save.interval && t.interval > *s.setup.save.interval * (1 + 1e-9))
    r.notes.push_back(fmt::format("saves are {:.0f} s apart instead of {:.0f} s, because a copy takes that long",
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
    operation_setup first = setup;
    first.notes_racks = i == 0;
    out.push_back(i == 0 && actors ? run_operation_by_actors(first, seed, s.platform) : run_by_queue(first, seed));
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
  if (s.runs.front().spans.size() == max_spans)
    out.left_out = fmt::format("stretches of the job's life after the first {}", max_spans);
}

/// What each rack did with the first seed, and which component broke its trays.
void add_racks(run_record& out, const operation_study& s) {
  const rack_log& log = s.runs.front().racks;
  const cluster_shape& shape = s.setup.cluster;
  for (std::int64_t r = 0; r < shape.racks; ++r) out.racks.push_back({fmt::format("rack {:02}", r), {}});
  for (const rack_stretch& x : log.over) {
    std::string what(rack_use_names[static_cast<std::size_t>(x.use)]);
    if (x.broken > 0) {
      const std::string& cause = s.setup.failures.components[static_cast<std::size_t>(x.component)].name;
      what += fmt::format(", {} of {} trays in repair: {}", x.broken, shape.trays_per_rack, cause);
    }
    std::vector<state_track::stretch>& shown = out.racks[static_cast<std::size_t>(x.rack)].stretches;
    if (!shown.empty() && shown.back().end_s == x.begin && shown.back().what == what) shown.back().end_s = x.end;
    else shown.push_back({x.begin, x.end, std::move(what)});
  }
  if (log.left_out == 0) return;
  const std::string missing = fmt::format("states of racks after the first {}", max_rack_stretches);
  out.left_out += (out.left_out.empty() ? "" : "; ") + missing;
}

priced_operation priced(const scenario& s, const operation_case& c) {
  const cluster_job& job = c.jobs.front();
  priced_operation out;
  step_price step = price_step(job, {});
  if (step.outcome.status != run_status::ok) {
    for (const std::string& reason : step.outcome.reasons) out.reasons.push_back(job.name + ": " + reason);
    return out;
  }
  const training_workload& w = training_of(job);
  out.study.setup = setup_of(s, *c.cluster, job, step.time);
  out.study.tokens_per_step = static_cast<double>(w.global_batch_size * w.seq_length);
  if (s.platform.price.per_gpu) out.study.price = s.platform.price.per_gpu->read();
  out.reasons = setup_problems(out.study.setup, c.cluster->seeds);
  if (step.waves) out.site = figures_of(s.platform, *s.facility, *step.waves);
  out.step = std::move(step.outcome);
  out.power = std::move(step.power);
  return out;
}

void run_job(run_record& out, const scenario& s, const operation_case& c, operation_metrics& m, bool actors) {
  result& r = out.outcome;
  priced_operation job = priced(s, c);
  r.reasons = job.reasons;
  if (!r.reasons.empty()) return;
  operation_study& study = job.study;
  study.runs = play(study.setup, s, c.cluster->seeds, actors);
  m.training = tally_of(study);
  const std::string& name = c.jobs.front().name;
  for (const std::string& n : job.step.notes) r.notes.push_back(name + ": " + n);
  if (s.facility) {
    m.site = site_of_months(r, s, *m.training, job.step);
    m.site->power = job.site;
  }
  m.cap_slowdown = cap_slowdown(job.step);
  add_notes(r, study, *m.training);
  add_operation_sections(r, study, *m.training);
  add_picture(out, study, name);
  add_racks(out, study);
  out.stays = picture_of(study, name);
  out.power = std::move(job.power);
  out.over_seeds = spread_over_seeds(study);
}

}  // namespace

bool is_followed_alone(const scenario& s) {
  const auto* c = std::get_if<operation_case>(&s.workload);
  return c && is_lone(*c);
}

priced_operation price_alone(const scenario& s) { return priced(s, std::get<operation_case>(s.workload)); }

operation_metrics measure_alone(const scenario& s, const priced_operation& job) {
  const auto& c = std::get<operation_case>(s.workload);
  operation_study study = job.study;
  study.runs = play(study.setup, s, c.cluster->seeds, false);
  operation_metrics m;
  m.duration = c.cluster->duration;
  m.gpus = study.setup.cluster.gpus();
  m.lone = true;
  m.training = tally_of(study);
  if (s.facility) {
    scenario machine = s;
    machine.platform.racks = static_cast<int>(study.setup.cluster.racks);
    result sections;
    m.site = site_of_months(sections, machine, *m.training, job.step);
    m.site->power = job.site;
  }
  return m;
}

void run_operation(run_record& out, const scenario& s, const operation_case& c, const run_options& o) {
  operation_metrics m;
  m.duration = c.cluster->duration;
  m.gpus = s.platform.gpus();
  m.lone = is_lone(c);
  if (m.lone) run_job(out, s, c, m, o.simulate);
  else if (!c.jobs.empty()) run_shared_cluster(out, s, c, m);
  if (c.fleet) run_fleet(out, s, c, m);
  if (c.cluster->queue && c.jobs.empty()) {
    m.queue = run_queue(s, *c.cluster, out.stays);
    add_queue_sections(out.outcome, *m.queue);
  }
  if (out.outcome.reasons.empty()) set_metrics(out.outcome.metrics, m);
}

}  // namespace nvlsim
