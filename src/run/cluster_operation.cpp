#include "run/cluster_operation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/analysis/cluster_metrics.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/run/run.hpp"
#include "run/cluster_power.hpp"
#include "run/facility_run.hpp"
#include "run/operation_setup.hpp"
#include "run/queue_run.hpp"

namespace nvlsim {
namespace {

bool trains(const cluster_job& j) { return std::holds_alternative<training_workload>(j.alone->workload); }

/// Replicas of a service in trays: those that fit share one, larger ones take whole trays of a rack.
tray_request trays_of_service(const platform& p, std::int64_t gpus, std::int64_t replicas) {
  const std::int64_t each = p.vm.gpus, trays = std::max<std::int64_t>(1, (gpus + each - 1) / each),
                     together = std::max<std::int64_t>(1, each / std::max<std::int64_t>(1, gpus));
  return {(replicas + together - 1) / together * trays, trays, trays};
}

/// A service as the operation knows it: nothing is saved, replicas restart alone and load weights from the store.
operation_setup service_of(const scenario& s, const operation_workload& o, const cluster_job& j, double weights) {
  const training_operation& t = *o.training;
  const auto& w = std::get<inference_workload>(j.alone->workload);
  operation_setup out;
  out.cluster = shape_of(s.platform, t.racks_per_row);
  out.failures = failures_of(s, t.failures, out.cluster);
  for (component& c : out.failures.components)
    if (c.degraded) c.speed = c.degraded->speed;  // of a replica; prices of links are those of training
  out.save.unchanged = true;
  out.save.interval = seconds{};
  out.save.state = bytes::from_base(weights * w.gpus());
  out.save.to_host = s.platform.gpu.c2c;
  out.save.network = fabric_of_tray(s.platform);
  out.save.tiers = {t.save.tiers.back()};
  out.recovery = t.recovery;
  out.recovery.mode = recovery_mode::replica;
  out.recovery.again = second_failure::restart;
  out.recovery.min_replicas = 1;
  out.recovery.replica_stall = seconds{};
  out.asked = trays_of_service(s.platform, w.gpus(), j.replicas);
  out.replicas = j.replicas;
  out.duration = o.duration;
  return out;
}

/// Bytes of weights on a GPU, from a run of one replica.
double weights_of(const result& replica) {
  for (const output::section_row& row : output::rows_of(replica.memory))
    if (row.label == "weights" && row.content.number()) return *row.content.number();
  return 0;
}

/// A cluster, and what a GPU of each of its members draws while it works, with its share of the racks.
struct priced_cluster {
  cluster_setup setup;
  std::vector<job_power> power;       ///< by member
  std::vector<std::string> kept_out;  ///< jobs that do not run, because there is no power for them
  std::optional<cluster_caps> caps;
  bool keeps_batch_out = false;        ///< for want of power
  std::optional<double> cap_slowdown;  ///< of steps, the largest
};

/// The job as the site's policy lets it run; null: it does not.
std::optional<cluster_job> allowed(priced_cluster& to, const scenario& s, const operation_case& c, std::size_t i) {
  const cluster_job& j = c.jobs[i];
  if (!to.caps || !follows_caps(*s.facility)) return j;
  const power_share& share = to.caps->of(s.facility->capping).jobs[i];
  if (!share.runs) return std::nullopt;
  if (share.speed < 1 && trains(j)) to.cap_slowdown = std::max(1 / share.speed - 1, to.cap_slowdown.value_or(0));
  return under_cap(j, share.cap < j.alone->platform.gpu.cap() ? std::optional(share.cap) : std::nullopt);
}

void add_member(priced_cluster& to, const scenario& s, const operation_case& c, std::size_t number,
                result& about) {
  const std::optional<cluster_job> let = allowed(to, s, c, number);
  if (!let) {
    to.kept_out.push_back(c.jobs[number].name);
    return;
  }
  const cluster_job& j = *let;
  cluster_setup& out = to.setup;
  job_power power{{}, {}, j.alone->platform.racks};
  cluster_member m{j.name, j.queue, !trains(j), j.start, {}};
  const auto refuse = [&](const result& r) {
    for (const std::string& reason : r.reasons) about.reasons.push_back(j.name + ": " + reason);
  };
  if (m.service) {
    const result replica = run_scenario(*j.alone, {.explained = false, .simulate = false}).outcome;
    if (replica.status == run_status::infeasible || replica.status == run_status::error) return refuse(replica);
    m.life = service_of(s, *c.cluster, j, weights_of(replica));
    power.mean = drawn_at(s.platform, watts::from_base(*replica.metrics.find("power_W_per_gpu")->number()));
  } else {
    step_price step = price_step(j, {});
    if (step.outcome.status != run_status::ok) return refuse(step.outcome);
    m.life = setup_of(s, *c.cluster, j, step.time);
    power.mean = drawn_while_training(step.outcome);
    power.waves = std::move(step.waves);
    if (const auto x = cap_slowdown(step.outcome)) to.cap_slowdown = std::max(*x, to.cap_slowdown.value_or(*x));
    for (const std::string& n : step.outcome.notes) about.notes.push_back(j.name + ": " + n);
  }
  for (const std::string& p : setup_problems(m.life, c.cluster->seeds)) about.reasons.push_back(j.name + ": " + p);
  if (m.life.asked.slots > out.shape.trays())
    about.reasons.push_back(
        fmt::format("{}: needs {} trays; the cluster has {}", j.name, m.life.asked.slots, out.shape.trays()));
  out.members.push_back(std::move(m));
  to.power.push_back(std::move(power));
}

/// Jobs in the queue are not simulated; their GPUs draw as those that train do, or all they may. Caps that jobs
/// share are not theirs.
watts drawn_by_batch(const scenario& s, const priced_cluster& c) {
  if (c.caps && follows_caps(*s.facility)) return c.caps->batch;
  watts sum;
  double gpus = 0;
  for (std::size_t m = 0; m < c.power.size(); ++m) {
    if (c.setup.members[m].service) continue;
    const auto n = static_cast<double>(c.setup.members[m].life.asked.slots * c.setup.shape.gpus_per_tray);
    sum += c.power[m].mean * n;
    gpus += n;
  }
  return gpus > 0 ? sum / gpus : drawn_at(s.platform, s.platform.gpu.cap());
}

/// The site over the run, mean over the seeds.
site_figures site_of_cluster(result& out, const scenario& s, const priced_cluster& c, const cluster_study& study,
                             double goodput) {
  const double all = static_cast<double>(study.setup.shape.gpus()) * study.setup.queue.duration.base() *
                     static_cast<double>(study.runs.size());
  std::vector<drawn_share> busy_power;
  for (std::size_t m = 0; m < c.power.size(); ++m) {
    double busy = 0;
    for (const cluster_seed& r : study.runs)
      for (const gpu_use u : {gpu_use::useful, gpu_use::redone, gpu_use::copies})
        busy += r.members[m].gpu_seconds[static_cast<std::size_t>(u)];
    busy_power.push_back({c.power[m].mean, busy / all});
  }
  double batch = 0;
  for (const cluster_seed& r : study.runs) batch += r.queue.time.useful + r.queue.time.redone;
  if (batch > 0) {
    busy_power.push_back({drawn_by_batch(s, c), batch / all});
    out.notes.push_back(fmt::format("assumed: a GPU in a batch job takes {:.4g} W, its share of the rack included",
                                    busy_power.back().each.base()));
  }
  return site_of_shares(out, s,
                        {std::move(busy_power), study.setup.queue.duration, goodput, reclaimed_share(study)});
}

/// The site when jobs of the first seed drew most.
struct moment_power {
  cluster_moment when;
  shared_power power;
};
moment_power power_of_first(const scenario& s, const priced_cluster& c, const cluster_outcome& o) {
  moment_power out;
  out.when = busiest_moment(c.setup, o, c.power);
  const bool batch = !c.setup.batch.jobs.empty();
  const watts others = batch ? drawn_by_batch(s, c) : drawn_at(s.platform, s.platform.gpu.idle_power);
  out.power = power_of_cluster(s, out.when, c.power, c.setup, others);
  return out;
}

/// What racks and site see of all jobs, and what each policy of caps gives them.
void add_power(run_record& out, const scenario& s, const operation_case& c, const priced_cluster& priced,
               const moment_power& shared) {
  value section = *out.outcome.energy.find("facility");
  value power = power_value(s, {shared.power.waves, shared.power.figures});
  power.set("at_s", shared.when.at_s);
  value names{value::array{}};
  for (const std::size_t m : shared.when.members) names.items()->emplace_back(priced.setup.members[m].name);
  power.set("jobs", std::move(names));
  power.set("in_step_peak_W", shared.power.in_step.base());
  section.set("power", std::move(power));
  if (priced.caps) section.set("capping", caps_value(c, *priced.caps));
  out.outcome.energy.set("facility", std::move(section));
  out.power = curves_of_site(shared.power.waves);
}

cluster_seed numbers_of(const cluster_setup& c, const cluster_outcome& o) {
  cluster_seed out;
  out.queue = queue_numbers(o.jobs, c.queue, o.schedule);
  out.members = o.members;
  out.cluster = o.cluster;
  out.waits.assign(c.members.size(), -1);
  out.evictions.assign(c.members.size(), 0);
  for (std::size_t m = 0; m < c.members.size(); ++m)
    if (o.members[m].began >= 0) out.waits[m] = o.members[m].began - c.members[m].start.base();
  std::vector<std::int32_t> member_of(o.jobs.jobs.size(), -1);
  for (std::size_t m = 0; m < c.members.size(); ++m)
    member_of[static_cast<std::size_t>(o.job_of[m])] = static_cast<std::int32_t>(m);
  for (const job_attempt& a : o.schedule.attempts)
    if (const auto m = member_of[static_cast<std::size_t>(a.job)]; m >= 0 && a.how == attempt_end::preempted)
      ++out.evictions[static_cast<std::size_t>(m)];
  return out;
}

/// What each training job and service did with the first seed, a stream each.
void add_lives(run_record& out, const cluster_setup& c, const cluster_outcome& o) {
  for (std::size_t m = 0; m < c.members.size(); ++m) {
    const operation_setup& life = c.members[m].life;
    rank_class track{c.members[m].name, life.asked.slots * life.cluster.gpus_per_tray, {stream{}}};
    for (const operation_span& x : o.members[m].spans) {
      const bool runs = x.use == gpu_use::useful;
      const std::string name = phase_name(c.members[m], x);
      operation_part part{runs ? part_kind::gemm : part_kind::idle, name, seconds::from_base(x.end - x.begin)};
      out.planned.append(track.streams.front(), out.planned.add_template({name, {std::move(part)}, {}, {}}), {});
    }
    out.planned.classes.push_back(std::move(track));
  }
  out.times = evaluate(out.planned);
}

}  // namespace

std::string phase_name(const cluster_member& m, const operation_span& x) {
  std::string out(gpu_use_names[static_cast<std::size_t>(x.use)]);
  if (x.use == gpu_use::useful) out = m.service ? "serving" : "steps";
  if (x.component >= 0) out += ": " + m.life.failures.components[static_cast<std::size_t>(x.component)].name;
  return out;
}

bool is_lone(const operation_case& c) {
  return c.jobs.size() == 1 && trains(c.jobs.front()) && !c.cluster->queue && c.jobs.front().queue.empty() &&
         !(c.jobs.front().start > seconds{});
}

static priced_cluster price_cluster(const scenario& s, const operation_case& c, std::uint64_t seed,
                                    result& about) {
  const operation_workload& o = *c.cluster;
  priced_cluster priced;
  cluster_setup& out = priced.setup;
  out.shape = shape_of(s.platform, o.training->racks_per_row);
  out.failures = failures_of(s, o.training->failures, out.shape);
  out.maintenance = o.training->maintenance;
  out.queue.cluster = {s.platform.racks, s.platform.rack.vms, s.platform.vm.gpus};
  out.queue.duration = o.duration;
  out.queue.placement.kind = placement_kind::block;
  if (o.queue) {
    out.queue.policy = o.queue->policy;
    out.queue.placement = o.queue->placement;
    if (o.queue->jobs || o.queue->generator) out.batch = queued_jobs(*o.queue, seed);
  }
  if (s.facility) priced.caps = caps_of(s, c, about);
  if (!about.reasons.empty()) return priced;
  for (std::size_t j = 0; j < c.jobs.size(); ++j) add_member(priced, s, c, j, about);
  for (const std::string& name : priced.kept_out)
    about.notes.push_back(name +
                          ": does not run, because the site's budget has no power for it beside the others");
  const bool keeps_out = priced.caps && follows_caps(*s.facility) &&
                         s.facility->capping == capping_policy::admission && !priced.caps->batch_admitted;
  if (keeps_out && !out.batch.jobs.empty()) {
    out.batch = {};
    about.notes.push_back(
        "batch jobs do not run, because the site's budget has no power for them beside the others");
  }
  priced.keeps_batch_out = keeps_out;
  if (out.members.empty() && about.reasons.empty())
    about.reasons.push_back("the site's budget has no power for any job without a cap");
  return priced;
}

cluster_setup shared_cluster_of(const scenario& s, const operation_case& c, std::uint64_t seed, result& about) {
  return price_cluster(s, c, seed, about).setup;
}

void run_shared_cluster(run_record& out, const scenario& s, const operation_case& c, operation_metrics& m) {
  result& r = out.outcome;
  cluster_study study;
  const priced_cluster priced = price_cluster(s, c, s.simulation.seed, r);
  if (!r.reasons.empty()) return;
  study.setup = priced.setup;
  if (s.platform.price.per_gpu) study.price = s.platform.price.per_gpu->read();
  for (const cluster_job& j : c.jobs) {
    if (std::find(priced.kept_out.begin(), priced.kept_out.end(), j.name) != priced.kept_out.end()) continue;
    double tokens = 0;
    if (trains(j)) tokens = static_cast<double>(training_of(j).global_batch_size * training_of(j).seq_length);
    study.tokens_per_step.push_back(tokens);
  }
  queue_study queued;
  std::optional<moment_power> shared;
  for (std::int64_t i = 0; i < c.cluster->seeds; ++i) {
    const std::uint64_t seed = s.simulation.seed + static_cast<std::uint64_t>(i);
    if (i > 0 && c.cluster->queue && c.cluster->queue->generator && !priced.keeps_batch_out)
      study.setup.batch = queued_jobs(*c.cluster->queue, seed);
    const cluster_outcome o = run_cluster(study.setup, seed);
    study.runs.push_back(numbers_of(study.setup, o));
    queued.runs.push_back(study.runs.back().queue);
    if (i > 0) continue;
    queued.job_notes = study.setup.batch.notes;
    out.stays = picture_of(o.jobs, study.setup.queue.cluster, o.schedule);
    add_lives(out, study.setup, o);
    if (s.facility) shared = power_of_first(s, priced, o);
  }
  m.training = tally_of(study);
  m.availability = availability_of(study);
  if (s.facility) {
    m.site = site_of_cluster(r, s, priced, study, m.training ? m.training->goodput : 1);
    m.site->power = shared->power.figures;
    add_power(out, s, c, priced, *shared);
  }
  m.cap_slowdown = priced.cap_slowdown;
  add_cluster_sections(r, study);
  add_queue_sections(r, queued);
  m.queue = std::move(queued);
  out.over_seeds = spread_over_seeds(study);
}

}  // namespace nvlsim
