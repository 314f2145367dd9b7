#include "run/fleet_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nvlsim/facility/facility.hpp"
#include "nvlsim/fleet/fleet.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/fleet_case.hpp"
#include "nvlsim/units/statistics.hpp"
#include "run/facility_run.hpp"
#include "run/operation_setup.hpp"

namespace nvlsim {
namespace {

/// Shares of the offline rate at which a replica is simulated.
constexpr std::array load_shares = {0.05, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};

double number_at(const value& section, std::string_view name, std::string_view statistic = {}) {
  const value* v = section.find(name);
  if (v && !statistic.empty()) v = v->find(statistic);
  return v && v->number() ? *v->number() : 0;
}

/// The replica under a load of its own.
run_record run_at(const scenario& alone, load_kind load, double rate) {
  scenario one = alone;
  auto& w = std::get<inference_workload>(one.workload);
  w.load = load;
  w.arrivals.rate_per_s = rate;
  if (load == load_kind::offline) w.objective = {};
  return run_scenario(one, {.explained = false, .simulate = false});
}

replica_point point_of(const result& r, double rate) {
  replica_point p;
  p.requests_per_s = rate;
  const value* attained = r.metrics.find("slo_attained_fraction");
  p.attained = attained && attained->number() ? *attained->number() : 1;
  p.ttft_s = number_at(r.metrics, "ttft_s", "mean");
  p.e2e_s = number_at(r.metrics, "e2e_s", "mean");
  double energy = 0;
  for (const char* part : {"gpus_J", "cpus_J", "trays_and_switches_J", "supply_losses_J"})
    energy += number_at(r.energy, part);
  const value* use = r.breakdown.find("mean_over_gpus");
  const double time = use ? number_at(*use, "makespan_s") : 0;
  p.power_W = time > 0 ? energy / time : 0;
  return p;
}

bool failed(const result& r, std::vector<std::string>& reasons) {
  if (r.status != run_status::infeasible && r.status != run_status::error) return false;
  reasons.insert(reasons.end(), r.reasons.begin(), r.reasons.end());
  return true;
}

/// What the serving simulator says of one replica.
struct priced_replica {
  replica_curve curve;
  double weights_bytes = 0;  ///< on a GPU
};

/// At `load_shares` of what it serves offline. Adds why it cannot run to `reasons`.
priced_replica price_replica(const scenario& alone, std::vector<std::string>& reasons) {
  const run_record offline = run_at(alone, load_kind::offline, 0);
  priced_replica out;
  if (failed(offline.outcome, reasons)) return out;
  for (const output::section_row& row : output::rows_of(offline.outcome.memory))
    if (row.label == "weights" && row.content.number()) out.weights_bytes = *row.content.number();
  const double most = number_at(offline.outcome.metrics, "requests_per_s");
  for (const double share : load_shares) {
    const run_record one = run_at(alone, load_kind::open_loop, share * most);
    if (failed(one.outcome, reasons)) return out;
    out.curve.points.push_back(point_of(one.outcome, share * most));
  }
  return out;
}

/// Time from the decision to the first request. Weights come at a given rate, from the store, or from the
/// replica's own drives.
void price_start(fleet_service& s, const fleet_member& m, const std::optional<save_tier>& store,
                 double weights_bytes) {
  const platform& p = m.alone->platform;
  const std::int64_t each = std::max(1, p.vm.gpus.read()), machines = (s.gpus + each - 1) / each;
  save_policy weights;
  weights.state = bytes::from_base(weights_bytes * static_cast<double>(s.gpus));
  save_tier from;
  if (m.from_store) {
    from = *store;
    weights.network = fabric_of_tray(p);
    s.from_store =
        fleet_load{weights.state.base(), (read_by_tray(from, weights) * static_cast<double>(machines)).base(),
                   m.provision.base(), m.warm_up.base()};
  } else {
    from.to = save_place::nvme;
    from.read =
        m.load_bandwidth ? m.load_bandwidth->read() / static_cast<double>(machines) : p.vm.nvme_read.read();
  }
  s.start_s = m.provision.base() + load_time(from, weights, machines, s.gpus).base() + m.warm_up.base();
}

value curve_value(const replica_curve& c) {
  value out{value::array{}};
  for (const replica_point& p : c.points) {
    value one{value::object{{"requests_per_s", p.requests_per_s}, {"slo_attained_fraction", p.attained}}};
    one.set("ttft_s", p.ttft_s);
    one.set("e2e_s", p.e2e_s);
    one.set("power_W", p.power_W);
    out.items()->push_back(std::move(one));
  }
  return out;
}

/// Sums over seeds, service by service.
struct fleet_sums {
  std::vector<service_outcome> services;
  std::vector<double> availability, attained;  ///< of all services, by seed
  std::array<joules, hours_a_day> energy_by_hour{};
  double failed_machines = 0, failed_gpu_s = 0, reclaimed_gpu_s = 0;
  fleet_outcome first;  ///< seed
};

void add(service_outcome& sum, const service_outcome& o) {
  for (double service_outcome::*member :
       {&service_outcome::requests, &service_outcome::served, &service_outcome::dropped, &service_outcome::retried,
        &service_outcome::attained, &service_outcome::ready_gpu_s, &service_outcome::starting_gpu_s,
        &service_outcome::short_s, &service_outcome::unplaced_s, &service_outcome::energy_J})
    sum.*member += o.*member;
  sum.ttft_s += o.ttft_s * o.served;
  sum.failures += o.failures;
  sum.starts += o.starts;
  sum.evicted += o.evicted;
  sum.reclaimed += o.reclaimed;
  sum.max_ready = std::max(sum.max_ready, o.max_ready);
}

service_outcome total_of(const std::vector<service_outcome>& services) {
  service_outcome out;
  for (const service_outcome& o : services) add(out, o);
  return out;
}

fleet_sums play_all(fleet_spec f, std::int64_t seeds, std::uint64_t first) {
  fleet_sums out;
  out.services.resize(f.services.size());
  for (std::int64_t k = 0; k < seeds; ++k) {
    f.keeps_lives = k == 0;
    fleet_outcome one = play_fleet(f, first + static_cast<std::uint64_t>(k));
    const service_outcome all = total_of(one.services);
    out.availability.push_back(all.availability());
    out.attained.push_back(all.slo_share());
    out.failed_machines += static_cast<double>(one.failed_machines);
    out.failed_gpu_s += one.failed_gpu_s;
    for (std::size_t h = 0; h < one.energy_by_hour_J.size(); ++h)
      out.energy_by_hour[h] += joules::from_base(one.energy_by_hour_J[h]);
    out.reclaimed_gpu_s += one.reclaimed_gpu_s;
    for (std::size_t i = 0; i < one.services.size(); ++i) add(out.services[i], one.services[i]);
    if (k == 0) out.first = std::move(one);
  }
  return out;
}

value service_value(const service_outcome& o, const fleet_service& about, double seeds, double duration) {
  value out{value::object{{"requests", o.requests / seeds}}};
  out.set("availability_fraction", o.availability());
  out.set("slo_attained_fraction", o.slo_share());
  out.set("dropped_requests", o.dropped / seeds);
  out.set("retried_requests", o.retried / seeds);
  out.set("ttft_mean_s", o.served > 0 ? o.ttft_s / o.served : 0);
  out.set("gpus_of_a_replica", about.gpus);
  out.set("replica_capacity_requests_per_s", about.curve.capacity());
  out.set("replica_sustained_requests_per_s", about.curve.sustained(about.objective_share));
  out.set("start_s", about.start_s);
  out.set("replicas_mean", o.ready_gpu_s / seeds / duration / static_cast<double>(about.gpus));
  out.set("replicas_most", o.max_ready);
  out.set("starts", static_cast<double>(o.starts) / seeds);
  out.set("failures", static_cast<double>(o.failures) / seeds);
  out.set("short_of_capacity_s", o.short_s / seeds);
  if (o.evicted > 0) out.set("evicted", static_cast<double>(o.evicted) / seeds);
  if (o.reclaimed > 0) out.set("reclaimed", static_cast<double>(o.reclaimed) / seeds);
  out.set("without_room_s", o.unplaced_s / seeds);
  return out;
}

/// The middle nine tenths of the seeds.
void add_band(result& r, const char* metric, const std::vector<double>& by_seed) {
  if (by_seed.size() < 2) return;
  r.bands.set(metric, value{value::array{value{share_below(by_seed, 0.05)}, value{share_below(by_seed, 0.95)}}});
}

/// Load, replicas and queue of a service.
std::vector<time_curve> curves_of(const std::vector<fleet_sample>& samples) {
  std::vector<time_curve> out = {
      {"load (requests/s)", {}}, {"ready replicas", {}}, {"starting replicas", {}}, {"waiting requests", {}}};
  for (const fleet_sample& x : samples) {
    const std::array values = {x.requests_per_s, static_cast<double>(x.ready), static_cast<double>(x.starting),
                               x.waiting};
    for (std::size_t k = 0; k < values.size(); ++k) out[k].points.emplace_back(x.time_s, values[k]);
  }
  return out;
}

/// What each replica of each service did, on the lowest lane of its service that is free.
void add_fleet_picture(run_record& out, const fleet_spec& f, const fleet_outcome& first) {
  constexpr std::array ends = {"", ", then leaves", ", then fails", ", then evicted", ", then taken back"};
  for (std::size_t i = 0; i < f.services.size(); ++i)
    out.services.push_back({f.services[i].name, {}, "replica", curves_of(first.samples[i])});
  std::vector<replica_life> lives = first.lives;
  std::stable_sort(lives.begin(), lives.end(),
                   [](const replica_life& a, const replica_life& b) { return a.begin_s < b.begin_s; });
  std::vector<std::vector<double>> until(f.services.size());
  for (const replica_life& x : lives) {
    std::vector<double>& lanes = until[x.service];
    const auto free = std::find_if(lanes.begin(), lanes.end(), [&](double t) { return t <= x.begin_s; });
    const auto lane = static_cast<std::size_t>(free - lanes.begin());
    if (free == lanes.end()) lanes.push_back(x.end_s);
    else *free = x.end_s;
    const auto add_slice = [&](double begin, double end, const char* what, bool last) {
      if (!(end > begin)) return;
      out.services[x.service].stretches.push_back(
          {begin, end,
           fmt::format("{} in rack {:02}{}", what, x.rack, last ? ends[static_cast<std::size_t>(x.how)] : ""),
           lane});
    };
    add_slice(x.begin_s, x.ready_s, "starting", !(x.end_s > x.ready_s));
    add_slice(x.ready_s, x.end_s, "ready", true);
  }
  if (first.lives_left_out > 0)
    out.left_out = fmt::format("replicas after the first {} that ended", max_replica_lives);
}

/// Of spot GPUs.
fleet_evictions evictions_of(const scenario& s) {
  if (!s.facility || !s.facility->money || !s.facility->money->spot) return {};
  const spot_market& m = *s.facility->money->spot;
  return {m.eviction_after.base(), m.notice.base(), m.returns_after.value_or(usual_return).base(), m.takes_rack};
}

fleet_figures figures_of(const scenario& s, const fleet_sums& sums, double seeds, double duration) {
  const service_outcome all = total_of(sums.services);
  fleet_figures out;
  out.requests = all.requests / seeds;
  out.availability = all.availability();
  out.attained = all.slo_share();
  out.retried_share = all.requests > 0 ? all.retried / all.requests : 0;
  const double paid = all.ready_gpu_s + all.starting_gpu_s;
  out.gpus = paid / seeds / duration;
  out.use = all.ready_gpu_s / seeds / duration / s.platform.gpus();
  out.energy = joules::from_base(all.energy_J / seeds);
  const facility_spec* site = s.facility.get();
  if (!site) return out;
  std::array<joules, hours_a_day> drawn = sums.energy_by_hour;
  for (joules& e : drawn) e = e / seeds;
  const footprint took = footprint_of(site->overheads, drawn);
  out.carbon_g = took.carbon_g;
  if (!site->money) return out;
  payment money = *site->money;
  money.plays_evictions = true;
  const bool keeps_all =
      money.way == purchase::owned || money.way == purchase::reserved;  // paid whether used or not
  out.bill = bill_for(money, keeps_all ? s.platform.gpus() : out.gpus, seconds::from_base(duration),
                      took.at_meter.value_or(joules{}))
                 .paid();
  return out;
}

}  // namespace

void run_fleet(run_record& out, const scenario& s, const operation_case& c, operation_metrics& m) {
  result& r = out.outcome;
  fleet_spec f = c.fleet->cluster;
  if (c.fleet->store && c.fleet->store->store_read) f.store_read = c.fleet->store->store_read->read().base();
  f.evictions = evictions_of(s);
  value curves{value::object{}};
  for (const fleet_member& member : c.fleet->services) {
    fleet_service service = member.about;
    std::vector<std::string> reasons;
    priced_replica priced = price_replica(*member.alone, reasons);
    for (const std::string& reason : reasons) r.reasons.push_back(fmt::format("{}: {}", service.name, reason));
    if (!reasons.empty()) continue;
    price_start(service, member, c.fleet->store, priced.weights_bytes);
    service.curve = std::move(priced.curve);
    curves.set(service.name, curve_value(service.curve));
    f.services.push_back(std::move(service));
  }
  if (r.reasons.empty()) r.reasons = fleet_problems(f);
  if (!r.reasons.empty()) return;
  const auto seeds = static_cast<double>(c.cluster->seeds);
  const fleet_sums sums = play_all(f, c.cluster->seeds, s.simulation.seed);
  m.fleet = figures_of(s, sums, seeds, f.duration_s);
  add_fleet_picture(out, f, sums.first);
  value services{value::object{}};
  for (std::size_t i = 0; i < f.services.size(); ++i)
    services.set(f.services[i].name, service_value(sums.services[i], f.services[i], seeds, f.duration_s));
  r.breakdown.set("fleet", value::object{{"services", std::move(services)},
                                         {"failed_machines", sums.failed_machines / seeds},
                                         {"failed_gpus_mean", sums.failed_gpu_s / seeds / f.duration_s},
                                         {"reclaimed_gpus_mean", sums.reclaimed_gpu_s / seeds / f.duration_s}});
  r.breakdown.set("replica_curves", std::move(curves));
  add_band(r, "fleet_availability_fraction", sums.availability);
  add_band(r, "fleet_slo_attained_fraction", sums.attained);
  if (s.facility && s.facility->money) note_evictions(r, *s.facility->money);
  r.notes.push_back(
      "the load of a fleet is divided evenly over ready replicas; each replica performs as in an open-loop "
      "run at its rate");
}

}  // namespace nvlsim
