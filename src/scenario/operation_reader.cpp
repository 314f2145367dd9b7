#include "scenario/operation_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "nvlsim/operation/operation.hpp"
#include "nvlsim/stack/engine_settings.hpp"
#include "scenario/fleet_reader.hpp"
#include "scenario/operation_members.hpp"
#include "scenario/queue_reader.hpp"
#include "scenario/source.hpp"

namespace nvlsim {
namespace {

/// Checks what a job says against the cluster's rules and time.
void check_job(const config::reader& r, const cluster_job& job, const operation_workload& o) {
  std::vector<std::string> queues;
  if (o.queue)
    for (const queue_rules& q : o.queue->policy.queues) queues.push_back(q.name);
  if (!job.queue.empty() && std::find(queues.begin(), queues.end(), job.queue) == queues.end())
    r.fail("queue", fmt::format("no queue is named \"{}\" in /workload/queue/policy/queues", job.queue),
           nearest(job.queue, queues));
  if (o.duration > seconds{} && job.start >= o.duration)
    r.fail("start", fmt::format("must be before the end of the run, {:g} s", o.duration.base()));
}

std::vector<cluster_job> read_cluster_jobs(config::reader& r, const config::document& doc,
                                           const operation_workload& o, const scenario_reader& read_alone,
                                           diagnostics& problems) {
  std::vector<cluster_job> out;
  for (config::reader& job : r.elements("jobs")) {
    cluster_job one;
    one.name = job.string_or("name", fmt::format("job {}", out.size()));
    for (const cluster_job& other : out)
      if (other.name == one.name) job.fail("name", fmt::format("two jobs are named \"{}\"", one.name));
    if (const auto start = job.find_quantity<seconds>("start")) one.start = *start;
    one.queue = job.string_or("queue", "");
    check_job(job, one, o);
    one.alone = read_nested(job, doc, {one.name, {}}, read_alone, problems);
    const bool trains = one.alone && std::holds_alternative<training_workload>(one.alone->workload);
    if (one.alone && !trains && !std::holds_alternative<inference_workload>(one.alone->workload))
      job.fail("workload", "a job of an operation needs kind training or inference");
    const config::key replicas = engine_field_named("replicas").names();
    if (trains && job.has(replicas))
      job.fail(job.spelling_of(replicas),
               "applies to serving jobs only; a training job's layout sets its replicas");
    one.replicas = job.integer_or(replicas, 1, {1, 1'000'000});
    job.done();
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

operation_case read_operation(config::reader& r, const config::document& doc, const platform& p,
                              const scenario_reader& read_alone, diagnostics& problems) {
  config::reader w = r.child("workload");
  w.ignore("kind");
  operation_workload o;
  constexpr config::range<double> at_most_a_century{std::numeric_limits<double>::min(), 100 * 365.25 * 86400};
  if (const auto d = w.find_quantity<seconds>("duration", at_most_a_century)) o.duration = *d;
  else if (!w.has("duration")) w.fail("duration", "is missing; give how long the cluster runs, such as \"90 d\"");
  o.seeds = w.integer_or("seeds", 1, {1, 100'000});
  if (r.has("jobs")) o.training = read_training_operation(w);
  else
    for (const char* key : {"profile", "failures", "checkpoint", "recovery", "maintenance", "step_spread"})
      w.belongs(key, "a scenario with \"jobs\"");
  if (std::optional<config::reader> q = w.find_child("queue"))
    o.queue = read_queue(*q, {doc, p, r.has("jobs"), o.duration.base() * static_cast<double>(o.seeds)}, problems);
  operation_case out;
  const std::shared_ptr<fleet_case> fleet = read_fleet(w, doc, p, read_alone, problems);
  if (fleet) fleet->cluster.duration_s = o.duration.base();
  out.fleet = fleet;
  w.done();
  out.cluster = std::make_shared<const operation_workload>(o);
  if (r.has("jobs")) out.jobs = read_cluster_jobs(r, doc, o, read_alone, problems);
  return out;
}

value write_operation(const operation_case& c) {
  value jobs{value::array{}};
  for (const cluster_job& j : c.jobs) {
    value one = write_workload(*j.alone);
    one.set("name", j.name);
    one.set("start", j.start.base());
    if (!j.queue.empty()) one.set("queue", j.queue);
    if (j.replicas != 1) one.set("replicas", j.replicas);
    jobs.items()->push_back(std::move(one));
  }
  value out{value::object{{"duration", c.cluster->duration.base()}, {"seeds", c.cluster->seeds}}};
  if (c.cluster->training) {
    const value training = write_training_operation(*c.cluster->training);
    for (const auto& [key, v] : *training.members()) out.set(key, v);
  }
  if (c.cluster->queue) out.set("queue", write_queue(*c.cluster->queue));
  out.set("jobs", std::move(jobs));
  if (c.fleet) out.set("fleet", write_fleet(*c.fleet));
  return out;
}

}  // namespace nvlsim
