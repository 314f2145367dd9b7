#include "run/queue_run.hpp"

#include <fmt/format.h>

#include <ostream>

#include "nvlsim/analysis/cluster_metrics.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/output/queue_output.hpp"
#include "nvlsim/run/queue_jobs.hpp"
#include "run/cluster_operation.hpp"

namespace nvlsim {
namespace {

queue_setting setting_of(const scenario& s, const operation_workload& w, std::uint64_t seed) {
  const cluster_queue& q = *w.queue;
  queue_setting out;
  out.cluster = {s.platform.racks, s.platform.rack.vms, s.platform.vm.gpus};
  out.policy = q.policy;
  out.placement = q.placement;
  out.failures = q.failures;
  out.maintenance = q.maintenance;
  out.duration = w.duration;
  out.seed = seed;
  return out;
}

/// What each training job and service of a cluster did.
std::vector<state_track> lives_of(const cluster_setup& c, const cluster_outcome& o) {
  std::vector<state_track> out;
  for (std::size_t m = 0; m < c.members.size(); ++m) {
    state_track track{c.members[m].name, {}, "phases", {}};
    for (const operation_span& x : o.members[m].spans)
      track.stretches.push_back({x.begin, x.end, phase_name(c.members[m], x)});
    out.push_back(std::move(track));
  }
  return out;
}

std::vector<node_repair> repairs_of(const cluster_setup& c, const cluster_outcome& o) {
  std::vector<node_repair> out;
  for (const tray_repair& x : o.repairs)
    out.push_back({x.tray, x.begin, x.end,
                   "in repair: " + c.failures.components[static_cast<std::size_t>(x.component)].name});
  return out;
}

/// What the first seed's picture lacks.
std::vector<std::string> missing_of(const cluster_setup& c, const cluster_outcome& o) {
  std::vector<std::string> out;
  if (o.repairs_left_out > 0) out.push_back(fmt::format("repairs after the first {}", max_tray_repairs));
  for (std::size_t m = 0; m < c.members.size(); ++m)
    if (o.members[m].spans.size() == max_spans)
      out.push_back(fmt::format("stretches of {} after the first {}", c.members[m].name, max_spans));
  return out;
}

/// A cluster as the first seed played it.
played_cluster play_first(const scenario& s) {
  if (!has_queue(s)) throw internal_error("no queue that could be written");
  const auto& c = std::get<operation_case>(s.workload);
  const std::uint64_t seed = s.simulation.seed;
  if (c.jobs.empty()) {
    played_cluster out;
    out.jobs = queued_jobs(*c.cluster->queue, seed);
    out.setting = setting_of(s, *c.cluster, seed);
    out.schedule = schedule_jobs(out.jobs, out.setting);
    return out;
  }
  result about;
  const cluster_setup shared = shared_cluster_of(s, c, seed, about);
  if (!about.reasons.empty()) throw io_error(about.reasons.front());
  cluster_outcome o = run_cluster(shared, seed);
  return {std::move(o.jobs),     shared.queue,        std::move(o.schedule),
          repairs_of(shared, o), lives_of(shared, o), missing_of(shared, o)};
}

}  // namespace

job_list queued_jobs(const cluster_queue& q, std::uint64_t seed) {
  return q.generator ? generate_jobs(*q.generator, seed) : *q.jobs;
}

queue_outcome queue_numbers(const job_list& jobs, const queue_setting& setting, const queue_schedule& played) {
  return {summarise(jobs, setting, played),
          played.time,
          static_cast<double>(setting.cluster.gpus()) * played.elapsed_s,
          played.preemptions,
          played.failures,
          played.requeues};
}

queue_study run_queue(const scenario& s, const operation_workload& w, std::optional<cluster_picture>& picture) {
  queue_study out;
  for (std::int64_t i = 0; i < w.seeds; ++i) {
    const std::uint64_t seed = s.simulation.seed + static_cast<std::uint64_t>(i);
    const job_list jobs = queued_jobs(*w.queue, seed);
    const queue_setting setting = setting_of(s, w, seed);
    const queue_schedule played = schedule_jobs(jobs, setting);
    if (i == 0) {
      out.job_notes = jobs.notes;
      picture = picture_of(jobs, setting.cluster, played);
    }
    out.runs.push_back(queue_numbers(jobs, setting, played));
  }
  return out;
}

void write_queue_jobs(std::ostream& out, const scenario& s) {
  const played_cluster p = play_first(s);
  out << jobs_csv(p.jobs, p.setting, p.schedule);
  if (!out.flush()) throw io_error("cannot write the jobs");
}

void write_queue_trace(std::ostream& out, const scenario& s, const value& metadata) {
  const played_cluster p = play_first(s);
  value told = metadata;
  told.set("classes_of_the_run", p.setting.cluster.racks);
  told.set("max_events", 0);
  told.set("left_out", value::array(p.left_out.begin(), p.left_out.end()));
  write_queue_trace(out, p, told);
}

bool has_queue(const scenario& s) {
  const auto* c = std::get_if<operation_case>(&s.workload);
  return c && (c->jobs.empty() ? c->cluster->queue.has_value() : !is_lone(*c));
}

}  // namespace nvlsim
