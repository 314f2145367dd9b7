#include "run/queue_run.hpp"

#include <ostream>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/output/queue_output.hpp"
#include "nvlsim/run/queue_jobs.hpp"

namespace nvlsim {
namespace {

job_list jobs_of(const cluster_queue& q, std::uint64_t seed) {
  return q.generator ? generate_jobs(*q.generator, seed) : *q.jobs;
}

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

const operation_workload& with_queue(const scenario& s) {
  if (!has_queue(s)) throw internal_error("no queue that could be written");
  return *std::get<operation_case>(s.workload).cluster;
}

}  // namespace

queue_study run_queue(const scenario& s, const operation_workload& w) {
  queue_study out;
  for (std::int64_t i = 0; i < w.seeds; ++i) {
    const std::uint64_t seed = s.simulation.seed + static_cast<std::uint64_t>(i);
    const job_list jobs = jobs_of(*w.queue, seed);
    const queue_setting setting = setting_of(s, w, seed);
    const queue_schedule played = schedule_jobs(jobs, setting);
    if (i == 0) out.job_notes = jobs.notes;
    out.runs.push_back({summarise(jobs, setting, played), played.time,
                        static_cast<double>(setting.cluster.gpus()) * played.elapsed_s, played.preemptions,
                        played.failures, played.requeues});
  }
  return out;
}

void write_queue_jobs(std::ostream& out, const scenario& s) {
  const operation_workload& w = with_queue(s);
  const job_list jobs = jobs_of(*w.queue, s.simulation.seed);
  const queue_setting setting = setting_of(s, w, s.simulation.seed);
  out << jobs_csv(jobs, setting, schedule_jobs(jobs, setting));
  if (!out.flush()) throw io_error("cannot write the jobs");
}

void write_queue_trace(std::ostream& out, const scenario& s, const value& metadata) {
  const operation_workload& w = with_queue(s);
  const job_list jobs = jobs_of(*w.queue, s.simulation.seed);
  const queue_setting setting = setting_of(s, w, s.simulation.seed);
  value told = metadata;
  told.set("classes_of_the_run", setting.cluster.racks);
  told.set("max_events", 0);
  told.set("left_out", value::array{});
  write_queue_trace(out, jobs, setting, schedule_jobs(jobs, setting), told);
}

bool has_queue(const scenario& s) {
  const auto* c = std::get_if<operation_case>(&s.workload);
  return c && c->cluster->queue;
}

}  // namespace nvlsim
