#include "nvlsim/operation/operation_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "operation/job_phases.hpp"
#include "operation/rack_notes.hpp"
#include "operation/strikes.hpp"

namespace nvlsim {
namespace {

std::vector<operation_state::slow_part>::iterator find_slow(operation_state& s, std::int64_t number) {
  return std::find_if(s.slow.begin(), s.slow.end(), [&](const auto& p) { return p.number == number; });
}

/// Replaces a slow part after a save, if the job runs and all that its repair takes down can be done without.
void evict(operation_state& s, const operation_event& e) {
  const auto found = find_slow(s, e.index);
  if (found == s.slow.end()) return;
  const tray_range part = found->trays;
  const bool used = uses(s.machine, part);
  if (used && restarts(s)) {  // on the trays that it has: looked at again once it runs
    order_at(s, std::max(1.0, s.setup->recovery.find_slow.base()), e);
    return;
  }
  machine_state trial = s.machine;
  if (used && !leaves(trial, part)) return;
  s.slow.erase(found);
  job_hit hit{e.component, part_lost(component_of(s, e.component).takes_down, s.machine.shape), 0, {}};
  for (std::int64_t t = part.first; t < part.first + part.count; ++t)
    if (s.machine.slot_of[at(t)] >= 0) hit.slots.push_back(s.machine.slot_of[at(t)]);
  break_trays(s.machine, part);
  order_at(s, component_of(s, e.component).repair.base(),
           {.kind = operation_event_kind::mended, .component = e.component, .index = part.first});
  if (!used) return;
  if (drops_replicas(s.setup->recovery.mode) && is_running(s)) {  // those on it alone
    hit_job(s, hit);
    return;
  }
  ++s.outcome.tolls[at(e.component)].stops;
  if (is_running(s)) {
    stop_planned(s, gpu_use::deciding, s.setup->recovery.decide.base());
    s.cause = e.component;
  }
}

void begin_maintenance(operation_state& s) {
  const maintenance_plan& m = s.setup->maintenance;
  order_at(s, (m.every + m.lasts).base(), {.kind = operation_event_kind::maintenance});
  if (s.phase != gpu_use::after_end) stop_planned(s, gpu_use::maintenance, m.lasts.base());
}

}  // namespace

seconds save_interval(const operation_setup& s, const std::vector<save_times>& tiers) {
  const seconds wanted = s.save.interval ? *s.save.interval : best_interval(s, tiers);
  return seconds::from_base(start_clock(tiers, wanted).interval);
}

namespace {

/// A kind of component that stops a job, and how often.
struct stops_of {
  const component* kind = nullptr;
  double a_day = 0;
};
/// Failures a day of a kind that meet the job: those of its program and of the site all, others by its trays.
double met_a_day(const component& k, const operation_setup& s) {
  const bool everywhere = k.of == cluster_part::process || k.of == cluster_part::site;
  const double share =
      everywhere ? 1 : static_cast<double>(s.asked.slots) / static_cast<double>(s.cluster.trays());
  return failures_per_day(k, s.cluster, s.asked.slots * s.cluster.gpus_per_tray) * share;
}

/// Whether replicas of the job go on after such a stop, from where they are.
bool replicas_go_on(const component& k, const operation_setup& s) {
  if (s.recovery.mode != recovery_mode::replica) return false;
  const std::int64_t trays =
                         k.takes_down == cluster_part::process ? 1 : trays_of(k.takes_down, 0, s.cluster).count,
                     in_rack = s.cluster.trays_per_rack,
                     of_job = trays < in_rack ? trays : (trays + in_rack - 1) / in_rack * s.asked.per_rack,
                     slots = std::clamp<std::int64_t>(of_job, 1, s.asked.slots),
                     hit = (slots * s.replicas + s.asked.slots - 1) / s.asked.slots;
  return s.replicas - hit >= std::max<std::int64_t>(1, s.recovery.min_replicas);
}

/// Kinds that stop a job whole.
std::vector<stops_of> stops_by_component(const operation_setup& s) {
  std::vector<stops_of> out;
  for (const component& k : s.failures.components)
    if (k.effect == failure_effect::stops && !(k.tolerated.peek() > 0) && !replicas_go_on(k, s))
      out.push_back({&k, met_a_day(k, s)});
  return out;
}

}  // namespace

/// Whether a job does work again after such a stop: unless it has a warning that is long enough for a save.
static bool redoes(const stops_of& x, const operation_setup& s, const std::vector<save_times>& tiers) {
  const cluster_part lost = part_lost(x.kind->takes_down, s.cluster);
  return !x.kind->notice || std::none_of(tiers.begin(), tiers.end(), [&](const save_times& t) {
    return t.survives >= lost && t.stall + t.drain <= *x.kind->notice;
  });
}

/// Saves between two copies that a job may go back to after such a stop.
static double saves_between(const stops_of& x, const operation_setup& s, const std::vector<save_times>& tiers) {
  std::int64_t fewest = tiers.back().every;
  for (const save_times& t : tiers)
    if (t.survives >= part_lost(x.kind->takes_down, s.cluster)) fewest = std::min(fewest, t.every);
  return static_cast<double>(fewest);
}

double saves_between_copies(const operation_setup& s, const std::vector<save_times>& tiers) {
  double a_day = 0, saves = 0;
  for (const stops_of& x : stops_by_component(s)) {
    a_day += x.a_day;
    saves += x.a_day * saves_between(x, s, tiers);
  }
  return a_day > 0 ? saves / a_day : 1;
}

namespace {

constexpr double seconds_a_day = 86400;
/// More copies of the tier before between two of a tier than this gain nothing.
constexpr std::int64_t max_ratio = 1000;

/// A choice of multiples: what it costs with its best interval, or with a given one.
double cost_of(const std::vector<save_times>& tiers, const std::vector<tier_use>& uses, double given) {
  double saving = 0, losing = 0, shortest = 0;
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const auto n = static_cast<double>(uses[t].every);
    saving += tiers[t].stall.base() / n;
    losing += uses[t].failures_a_day / seconds_a_day * n / 2;
    shortest = std::max(shortest, tiers[t].drain.base() / n);
  }
  double interval = given > 0 ? given : losing > 0 ? std::sqrt(saving / losing) : seconds_a_day;
  interval = std::max({interval, shortest, 1e-6});
  for (const tier_use& u : uses)  // no tier is left without a copy for longer than a day
    if (u.every > 1 && static_cast<double>(u.every) * interval > seconds_a_day)
      return std::numeric_limits<double>::infinity();
  return saving / interval + losing * interval;
}

/// The best multiple of each tier from `t` on.
double choose_multiples(const std::vector<save_times>& tiers, std::vector<tier_use>& uses, std::size_t t,
                        double given) {
  if (t == tiers.size()) return cost_of(tiers, uses, given);
  const std::int64_t before = t == 0 ? 1 : uses[t - 1].every;
  double least = std::numeric_limits<double>::infinity();
  std::vector<tier_use> best = uses;
  int worse = 0;
  for (std::int64_t ratio = 1; ratio <= (t == 0 ? 1 : max_ratio); ++ratio) {
    uses[t].every = before * ratio;
    const double cost = choose_multiples(tiers, uses, t + 1, given);
    if (cost < least) {
      least = cost;
      best = uses;
      worse = 0;
    } else if (++worse > 8) {
      break;  // costs have one valley
    }
  }
  uses = best;
  return least;
}

}  // namespace

std::vector<tier_use> best_tiers(const operation_setup& s, const std::vector<save_times>& tiers,
                                 std::optional<seconds> interval) {
  std::vector<tier_use> out(tiers.size());
  for (const stops_of& x : stops_by_component(s)) {
    if (!redoes(x, s, tiers)) continue;
    const cluster_part lost = part_lost(x.kind->takes_down, s.cluster);
    const auto found =
        std::find_if(tiers.begin(), tiers.end(), [&](const save_times& t) { return t.survives >= lost; });
    if (found != tiers.end()) out[at(found - tiers.begin())].failures_a_day += x.a_day;
  }
  // Wrong numbers are in all copies since, but in the store's last.
  for (const component& k : s.failures.components)
    if (k.effect == failure_effect::corrupts) out.back().failures_a_day += met_a_day(k, s);
  for (std::size_t t = 0; t < tiers.size(); ++t)
    if (out[t].failures_a_day > 0)
      out[t].interval =
          young_interval({seconds::from_base(seconds_a_day / out[t].failures_a_day), tiers[t].stall, {}});
  choose_multiples(tiers, out, 0, interval ? interval->base() : 0);
  return out;
}

restart_costs costs_at(const operation_setup& s, const std::vector<save_times>& tiers, seconds interval) {
  restart_costs c = mean_costs(s, tiers);
  c.restart += (interval + c.save) * ((saves_between_copies(s, tiers) - 1) / 2);
  return c;
}

/// Failures that a redundant job does without for each that stops it whole. Those that hit one replica do so only
/// if they hit all that hold a shard.
static double masked_stops(const operation_setup& s) {
  if (s.recovery.mode != recovery_mode::redundant) return 1;
  return std::max(1.0,
                  masked_failures(static_cast<double>(s.replicas), static_cast<double>(s.recovery.shards.copies)));
}

/// Times a day that a job goes back to a copy, each as often as there are saves between two copies for it.
static double intervals_lost_a_day(const operation_setup& s, const std::vector<save_times>& tiers) {
  double out = 0;
  for (const stops_of& x : stops_by_component(s))
    if (redoes(x, s, tiers)) out += x.a_day * saves_between(x, s, tiers) / masked_stops(s);
  for (const component& k : s.failures.components)
    if (k.effect == failure_effect::corrupts) out += met_a_day(k, s) * static_cast<double>(tiers.back().every);
  return out;
}

seconds best_interval(const operation_setup& s, const std::vector<save_times>& tiers) {
  const seconds longest = seconds::from_base(seconds_a_day), stall = mean_stall(tiers);
  const double lost = intervals_lost_a_day(s, tiers);
  if (!(lost > 0)) return stall > seconds{} ? longest : seconds{};
  return std::min(longest, best_interval({seconds::from_base(seconds_a_day / lost), stall, {}}));
}

restart_costs mean_costs(const operation_setup& s, const std::vector<save_times>& tiers) {
  const std::int64_t gpus = s.asked.slots * s.cluster.gpus_per_tray;
  double a_day = 0, of_hardware = 0;
  for (const stops_of& x : stops_by_component(s)) {
    a_day += x.a_day;
    if (x.kind->of != cluster_part::process) of_hardware += x.a_day;
  }
  return {seconds::from_base(86400 / a_day * masked_stops(s)), mean_stall(tiers),
          s.recovery.mean_restart(gpus) + s.recovery.spare_ready.read() * (a_day > 0 ? of_hardware / a_day : 0) +
              tiers.back().load};
}

std::vector<save_times> tiers_of(const operation_setup& s) {
  std::vector<save_times> out;
  const std::int64_t trays = s.asked.unit > 0 ? s.asked.unit : s.asked.slots;  // of what restarts alone
  for (const save_tier& t : s.save.tiers)
    out.push_back(times_of(t, s.save, trays, trays * s.cluster.gpus_per_tray));
  return out;
}

operation_state begin_job(const operation_setup& setup, machine_state machine) {
  operation_state s;
  s.setup = &setup;
  s.machine = std::move(machine);
  const std::vector<save_times> tiers = tiers_of(setup);
  s.clock = start_clock(tiers, save_interval(setup, tiers));
  s.replica_out.resize(at(setup.replicas));
  s.replica_restarts.resize(at(setup.replicas));
  s.replica_epoch.resize(at(setup.replicas));
  share_shards(s);
  s.outcome.tolls.resize(setup.failures.components.size());
  s.outcome.min_trays_up = static_cast<double>(setup.cluster.trays());
  return s;
}

operation_state begin_operation(const operation_setup& setup, std::uint64_t seed) {
  operation_state s = begin_job(setup, whole_machine(setup.cluster, setup.asked));
  begin_failures(s, seed);
  if (setup.notes_racks) begin_rack_notes(s);
  if (setup.maintenance.every > seconds{})
    order_at(s, setup.maintenance.every.base(), {.kind = operation_event_kind::maintenance});
  order_finish(s);
  return s;
}

void happen(operation_state& s, double now, const operation_event& e) {
  account(s, now);
  switch (e.kind) {
    case operation_event_kind::failure:
      if (const auto x = next_strike(s, e.component)) suffer(s, *x);
      break;
    case operation_event_kind::mended:
      mend(s, e);
      break;
    case operation_event_kind::phase_over:
      if (e.epoch == s.epoch) end_phase(s);
      break;
    case operation_event_kind::slow_found:
      evict(s, e);
      break;
    case operation_event_kind::slow_over:
      if (const auto found = find_slow(s, e.index); found != s.slow.end()) {
        s.slow.erase(found);
        order_finish(s);
      }
      break;
    case operation_event_kind::corruption_found:
      find_corruption(s, e);
      break;
    case operation_event_kind::rejoin:
      rejoin(s, e);
      break;
    case operation_event_kind::maintenance:
      begin_maintenance(s);
      break;
    case operation_event_kind::trays_free:
      look_for_trays(s);
      break;
    case operation_event_kind::last_save:
      save_before_reclaim(s, e);
      break;
    case operation_event_kind::reclaim:
      reclaim(s, e);
      break;
  }
  if (s.setup->notes_racks) note_racks(s, e.component);
}

operation_outcome end_operation(operation_state& s, double end) {
  account(s, end);
  close_span(s);
  if (s.setup->notes_racks) close_rack_notes(s, end);
  s.outcome.progress = s.clock.progress;
  s.outcome.saves = s.clock.saves;
  const double until = s.outcome.finished ? *s.outcome.finished : end;
  s.outcome.wall = s.outcome.began >= 0 ? until - s.outcome.began : 0;
  return std::move(s.outcome);
}

operation_outcome run_by_queue(const operation_setup& setup, std::uint64_t seed) {
  struct due {
    double at;
    std::uint64_t number;  // of equal times the one that was ordered first
    operation_event what;
    bool operator<(const due& o) const { return at > o.at || (at == o.at && number > o.number); }
  };
  operation_state s = begin_operation(setup, seed);
  std::priority_queue<due> queue;
  std::uint64_t number = 0;
  const double end = setup.duration.base();
  for (;;) {
    for (const operation_order& o : s.orders)
      if (o.at <= end) queue.push({o.at, number++, o.what});
    s.orders.clear();
    if (queue.empty()) break;
    const due next = queue.top();
    queue.pop();
    happen(s, next.at, next.what);
  }
  return end_operation(s, end);
}

}  // namespace nvlsim
