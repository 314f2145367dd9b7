#include "run/operation_setup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/facility/facility.hpp"
#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/run/operation_job.hpp"
#include "nvlsim/run/run.hpp"
#include "run/facility_run.hpp"

namespace nvlsim {
namespace {

/// The trays that the job's placement fills.
tray_request trays_for(const platform& p, const training_workload& w) {
  const std::int64_t in_rack = std::min<std::int64_t>(w.place.gpus_per_domain, p.gpus_per_rack());
  const std::int64_t each = p.vm.gpus, per_rack = (in_rack + each - 1) / each, gpus = w.par.gpus();
  return {gpus / in_rack * per_rack + (gpus % in_rack + each - 1) / each, per_rack};
}

/// Where a degraded part of the job is: its first GPU, its first rack, or all of its racks.
degradation degraded_part(const component& c, const tray_request& asked, const cluster_shape& shape) {
  degradation d;
  d.health = {c.degraded->speed, c.degraded->nvlink, c.degraded->nic};
  const std::int64_t racks = (asked.slots + asked.per_rack - 1) / asked.per_rack;
  if (c.takes_down <= cluster_part::tray) d.gpus = {{0, 0}};
  else if (c.takes_down == cluster_part::rack) d.racks = {{0, 0}};
  else if (c.takes_down == cluster_part::leaf)
    d.racks = {
        {0, std::min(racks, (shape.trays_of_leaf() + shape.trays_per_rack - 1) / shape.trays_per_rack) - 1}};
  else d.racks = {{0, racks - 1}};
  return d;
}

/// What is saved, what is loaded beside it, and how much all GPUs hold of both.
void size_state(save_policy& s, const training_operation& t, const cluster_job& j) {
  const training_workload& w = training_of(j);
  const double all = static_cast<double>(parameters(j.alone->model)),
               trained = trained_parameters(j.alone->model, w), weights = t.weights_per_parameter;
  s.state = bytes::from_base(trained * t.bytes_per_parameter);
  if (w.frozen_layers()) s.frozen = bytes::from_base(all * weights);
  const double copies = parameters_on_all_gpus(j.alone->model, w) - all;
  s.held = s.state + s.frozen + bytes::from_base(copies * weights);
}

/// Copies to other trays and to the store share the NICs and up-links with the job's exchanges. Both directions
/// carry as much, so that loads are limited as saves are.
void price_copies(operation_setup& s, const cluster_job& j) {
  const std::int64_t racks = (s.asked.slots + s.asked.per_rack - 1) / s.asked.per_rack;
  for (save_tier& t : s.save.tiers) {
    if (t.to == save_place::nvme) continue;
    const std::int64_t gpus = s.asked.slots * s.cluster.gpus_per_tray;
    const seconds drain = times_of(t, s.save, s.asked.slots, gpus).drain;
    if (!t.asynchronous || !(drain > seconds{})) continue;
    const double taken = s.save.state / drain / (*s.save.network * static_cast<double>(s.asked.slots));
    degradation d;
    d.racks = {{0, racks - 1}};
    d.health.nic = std::max(0.5, 1 - taken);  // flows share a port evenly at worst
    if (const seconds step = price_step(j, {d}).time; step > s.step_time) t.draining = s.step_time / step;
  }
}

/// More failures than this take minutes to play.
constexpr double max_failures = 1e8;

}  // namespace

void choose_multiples_of_saves(operation_setup& s) {
  if (!s.save.tiers.back().best_every) return;
  const std::vector<tier_use> best = best_tiers(s, tiers_of(s), s.save.interval);
  for (std::size_t t = 1; t < best.size(); ++t) s.save.tiers[t].every = best[t].every;
}

const training_workload& training_of(const cluster_job& j) {
  return std::get<training_workload>(j.alone->workload);
}

bandwidth fabric_of_tray(const platform& p) {
  return std::min(p.fabric.nic_bandwidth.read(), network::uplink_of(p)) * static_cast<double>(p.vm.gpus);
}

step_price price_step(const cluster_job& j, const std::vector<degradation>& degraded) {
  scenario s = *j.alone;
  auto& w = std::get<training_workload>(s.workload);
  w.degraded.insert(w.degraded.end(), degraded.begin(), degraded.end());
  run_record ran = run_scenario(s, {.simulate = false});
  step_price out{{}, std::move(ran.outcome), std::move(ran.power), {}};
  if (out.outcome.status == run_status::ok)
    out.time = seconds::from_base(*out.outcome.metrics.find("step_time_s")->number());
  if (out.outcome.status == run_status::ok && s.facility && degraded.empty()) {
    const auto stages = waves_of_stages(ran.planned, ran.times, s.platform.gpu.idle_power, w.par.pp);
    out.waves = power_of_site(s.platform, *s.facility, stages, kinds_of_racks(w.par, w.place));
  }
  return out;
}

failure_model failures_of(const scenario& s, const failure_model& given, const cluster_shape& shape) {
  failure_model out = scaled(given, shape);
  const auto leaves = [](const component& c) { return c.notice.has_value(); };
  const bool told = std::any_of(out.components.begin(), out.components.end(), leaves);
  if (told || !s.facility || !s.facility->money || !s.facility->money->spot) return out;
  const spot_market& m = *s.facility->money->spot;
  component c;
  c.name = "spot_eviction";
  c.of = c.takes_down = m.takes_rack ? cluster_part::rack : cluster_part::tray;
  c.mtbf = m.eviction_after;
  c.notice = m.notice;
  c.repair = m.returns_after.value_or(usual_return);
  out.components.push_back(std::move(c));
  return out;
}

cluster_shape shape_of(const platform& p, std::int64_t racks_per_row) {
  cluster_shape out{p.racks, p.rack.vms, p.vm.gpus, racks_per_row};
  if (p.fabric.leaf.ports < 4 || out.gpus_per_tray < 1) return out;  // its switches are not known
  out.rails = std::clamp<std::int64_t>(p.fabric.rails.read(), 1, out.gpus_per_tray);
  const double of_leaf = network::gpus_per_leaf(p) * static_cast<double>(out.rails);
  const std::int64_t trays = static_cast<std::int64_t>(of_leaf * (1 + 1e-9)) / out.gpus_per_tray;
  out.trays_per_leaf = network::is_one_leaf(p) ? out.trays() : std::max<std::int64_t>(1, trays);
  return out;
}

/// The job under the cap that its healthy step needs. Its other states run under it, too.
static cluster_job under_its_cap(const cluster_job& j) {
  if (!j.alone->facility) return j;
  const limited_scenario limits = limited_by_facility(*j.alone);
  if (!limits.capped) return j;
  auto capped = std::make_shared<scenario>(*limits.capped);
  auto site = std::make_shared<facility_spec>(*capped->facility);
  site->when_over = over_limit::report;
  capped->facility = std::move(site);
  cluster_job out = j;
  out.alone = std::move(capped);
  return out;
}

operation_setup setup_of(const scenario& s, const operation_workload& o, const cluster_job& j, seconds step_time) {
  const training_operation& t = *o.training;
  const training_workload& w = training_of(j);
  operation_setup out;
  out.cluster = shape_of(s.platform, t.racks_per_row);
  out.failures = failures_of(s, t.failures, out.cluster);
  out.save = t.save;
  size_state(out.save, t, j);
  out.save.network = fabric_of_tray(s.platform);
  if (!(t.save.to_host.peek() > bandwidth{})) out.save.to_host = s.platform.gpu.c2c;
  out.recovery = t.recovery;
  out.maintenance = t.maintenance;
  out.asked = trays_for(s.platform, w);
  out.replicas = t.replicas.value_or(w.par.dp);
  out.step_time = step_time;
  out.micro_batches = w.micro_batches();
  out.spread = t.step_spread;
  out.duration = o.duration;
  const double tokens = static_cast<double>(w.global_batch_size * w.seq_length);
  if (w.token_budget) out.work = step_time * (*w.token_budget / tokens);
  const cluster_job capped = under_its_cap(j);
  price_copies(out, capped);
  choose_multiples_of_saves(out);
  if (t.recovery.mode == recovery_mode::redundant) {
    cluster_job two = capped;
    auto doubled = std::make_shared<scenario>(*capped.alone);
    std::get<training_workload>(doubled->workload).global_batch_size *= 2;
    two.alone = std::move(doubled);
    if (const seconds time = price_step(two, {}).time; time > step_time) out.further_shard = time / step_time - 1;
  }
  for (component& c : out.failures.components)
    if (c.degraded) c.speed = step_time / price_step(capped, {degraded_part(c, out.asked, out.cluster)}).time;
  return out;
}

std::vector<std::string> setup_problems(const operation_setup& s, std::int64_t seeds) {
  std::vector<std::string> out;
  double a_day = 0;
  for (const component& c : s.failures.components)
    a_day += failures_per_day(c, s.cluster, s.asked.slots * s.cluster.gpus_per_tray);
  if (const double all = a_day * s.duration.base() / 86400 * static_cast<double>(seeds); all > max_failures)
    out.push_back(fmt::format(
        "{:.2g} failures are too many to simulate ({:.0f} per day on this cluster); give a longer mtbf, "
        "fewer seeds or a shorter duration",
        all, a_day));
  if (s.recovery.min_replicas > s.replicas)
    out.push_back(
        fmt::format("min_replicas {} exceeds the job's {} replicas", s.recovery.min_replicas, s.replicas));
  if (s.recovery.mode == recovery_mode::redundant && s.recovery.shards.copies > s.replicas)
    out.push_back(fmt::format("copies {} exceeds the job's {} replicas", s.recovery.shards.copies, s.replicas));
  if (s.replicas > s.asked.slots * s.cluster.gpus_per_tray)
    out.push_back(
        fmt::format("{} replicas do not fit on {} GPUs", s.replicas, s.asked.slots * s.cluster.gpus_per_tray));
  return out;
}

}  // namespace nvlsim
