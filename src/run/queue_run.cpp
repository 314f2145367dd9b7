#include "run/queue_run.hpp"

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

/// A cluster as the first seed played it.
struct played_cluster {
  job_list jobs;
  queue_setting setting;
  queue_schedule schedule;
};

played_cluster play_first(const scenario& s) {
  if (!has_queue(s)) throw internal_error("no queue that could be written");
  const auto& c = std::get<operation_case>(s.workload);
  const std::uint64_t seed = s.simulation.seed;
  if (c.jobs.empty()) {
    played_cluster out{queued_jobs(*c.cluster->queue, seed), setting_of(s, *c.cluster, seed), {}};
    out.schedule = schedule_jobs(out.jobs, out.setting);
    return out;
  }
  result about;
  const cluster_setup shared = shared_cluster_of(s, c, seed, about);
  if (!about.reasons.empty()) throw io_error(about.reasons.front());
  cluster_outcome o = run_cluster(shared, seed);
  return {std::move(o.jobs), shared.queue, std::move(o.schedule)};
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
  told.set("left_out", value::array{});
  write_queue_trace(out, p.jobs, p.setting, p.schedule, told);
}

bool has_queue(const scenario& s) {
  const auto* c = std::get_if<operation_case>(&s.workload);
  return c && (c->jobs.empty() ? c->cluster->queue.has_value() : !is_lone(*c));
}

}  // namespace nvlsim
