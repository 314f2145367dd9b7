#include "nvlsim/operation/operation_run.hpp"

#include <algorithm>
#include <queue>

#include "nvlsim/units/random.hpp"
#include "operation/job_phases.hpp"

namespace nvlsim {
namespace {

/// Decorrelates generators of consecutive numbers (SplitMix64).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::int64_t below(std::mt19937_64& g, std::int64_t n) {
  return std::min(n - 1, static_cast<std::int64_t>(uniform(g) * static_cast<double>(n)));
}

const component& of(const operation_state& s, std::int32_t c) { return s.setup->failures.components[at(c)]; }

std::int64_t gpus_of_job(const operation_state& s) {
  return s.machine.asked.slots * s.machine.shape.gpus_per_tray;
}

/// Orders the next failure of a kind.
void order_failure(operation_state& s, std::int32_t c) {
  const component& k = of(s, c);
  const double a_day =
      failures_per_day(k, s.machine.shape, gpus_of_job(s)) * std::max<double>(1, s.setup->failures.early_factor);
  if (!(a_day > 0)) return;
  order_at(s, weibull(s.draws[at(c)], k.shape) * 86400 / a_day,
           {.kind = operation_event_kind::failure, .component = c});
}

/// What chance decides about a failure. Every failure draws the same, so that policies do not change the next
/// ones.
struct chance {
  double accepted = 0, lemon = 0, pick = 0, watched = 0, repair = 0, found = 0, second = 0, second_pick = 0;
};
chance chance_of(std::mt19937_64& g) {
  chance out;
  out.accepted = uniform(g);
  out.lemon = uniform(g);
  out.pick = uniform(g);
  out.watched = uniform(g);
  out.repair = exponential(g);
  out.found = exponential(g);
  out.second = uniform(g);
  out.second_pick = uniform(g);
  return out;
}

std::int64_t picked(double u, std::int64_t n) {
  return std::min(n - 1, static_cast<std::int64_t>(u * static_cast<double>(n)));
}

/// The first tray of the part that fails; -1: a lemon that was replaced, so that nothing fails.
std::int64_t tray_that_fails(operation_state& s, const component& k, const chance& x) {
  const cluster_shape& shape = s.machine.shape;
  if (k.of == cluster_part::rack) return picked(x.pick, shape.racks) * shape.trays_per_rack;
  if (k.of == cluster_part::row) return picked(x.pick, shape.rows()) * shape.racks_per_row * shape.trays_per_rack;
  if (k.of == cluster_part::site) return 0;
  if (k.of == cluster_part::process) return s.machine.tray_of[at(picked(x.pick, s.machine.asked.slots))];
  const lemon_trays& l = s.setup->failures.lemons;
  if (s.lemons.empty() || x.lemon >= l.failures) return picked(x.pick, shape.trays());
  const std::int64_t tray = s.lemons[at(picked(x.pick, static_cast<std::int64_t>(s.lemons.size())))];
  if (l.removed_after > 0 && s.lemon_failures[tray]++ >= l.removed_after) return -1;
  return tray;
}

double repair_time(const component& k, const chance& x) {
  return k.repair.base() * (k.repair_is_fixed ? 1 : x.repair);
}

double detection_time(const operation_state& s, const component& k, const chance& x) {
  const recovery_policy& r = s.setup->recovery;
  if (k.detection) return k.detection->base();
  const double share = k.watched ? k.watched->read() : r.watched.read();
  return (x.watched < share ? r.health : r.watchdog).base();
}

std::vector<std::int32_t> slots_in(const operation_state& s, const tray_range& r) {
  std::vector<std::int32_t> out;
  for (std::int64_t t = r.first; t < r.first + r.count; ++t)
    if (const std::int32_t slot = s.machine.slot_of[at(t)]; slot >= 0) out.push_back(slot);
  return out;
}

cluster_part part_down(const component& k) { return std::max(k.takes_down, cluster_part::tray); }

/// Breaks trays until a repair.
void break_part(operation_state& s, std::int32_t c, std::int64_t tray, double repair) {
  break_trays(s.machine, trays_of(part_down(of(s, c)), tray, s.machine.shape));
  order_at(s, repair, {.kind = operation_event_kind::mended, .component = c, .index = tray});
}

void slow_down(operation_state& s, std::int32_t c, std::int64_t tray, const chance& x) {
  const component& k = of(s, c);
  const bool everywhere = k.takes_down == cluster_part::site;
  const std::int64_t number = s.slow_parts++;
  s.slow.push_back({number, everywhere ? -1 : tray, k.speed});
  const operation_event over{.kind = operation_event_kind::slow_over, .component = c, .index = number};
  order_at(s, repair_time(k, x), over);
  if (s.setup->recovery.evict_slow && !everywhere) {
    operation_event found = over;
    found.kind = operation_event_kind::slow_found;
    order_at(s, (k.detection ? *k.detection : s.setup->recovery.find_slow).base(), found);
  }
  order_finish(s);
}

void corrupt(operation_state& s, std::int32_t c, std::int64_t tray, const chance& x) {
  if (s.machine.slot_of[at(tray)] < 0 || !is_running(s)) return;
  s.clean = std::min(s.clean, newest_copy(s.clock, cluster_part::site, s.now).progress);
  ++s.corrupted;
  const double mean = (of(s, c).detection ? *of(s, c).detection : s.setup->recovery.watchdog).base();
  order_at(s, x.found * mean, {.kind = operation_event_kind::corruption_found, .component = c, .index = tray});
}

/// Somebody noticed wrong numbers. A job that is not running has none to look at, and is looked at later.
void find_corruption(operation_state& s, const operation_event& e) {
  if (s.phase == gpu_use::after_end) return;
  if (!is_running(s)) {
    order_at(s, std::max(1.0, s.setup->recovery.watchdog.base()), e);
    return;
  }
  s.corrupted = 0;
  const std::int32_t slot = s.machine.slot_of[at(e.index)];
  break_part(s, e.component, e.index, of(s, e.component).repair.base());
  hit_whole_job(s, {e.component, cluster_part::tray, 0, {slot}, true});
}

/// A component that stops what uses it.
void stop_part(operation_state& s, std::int32_t c, std::int64_t tray, const chance& x) {
  const component& k = of(s, c);
  job_hit hit{c, k.takes_down, detection_time(s, k, x), {}};
  if (k.takes_down == cluster_part::process) {
    hit.slots = {s.machine.slot_of[at(tray)]};
    if (hit.slots.front() >= 0) hit_job(s, hit);
    return;
  }
  hit.slots = slots_in(s, trays_of(part_down(k), tray, s.machine.shape));
  break_part(s, c, tray, repair_time(k, x));
  const bool of_a_tray = part_down(k) == cluster_part::tray && k.of != cluster_part::process;
  if (of_a_tray && x.second < s.setup->failures.together) {
    const tray_range rack = trays_of(cluster_part::rack, tray, s.machine.shape);
    const std::int64_t other = rack.first + picked(x.second_pick, rack.count);
    for (const std::int32_t slot : slots_in(s, {other, 1})) hit.slots.push_back(slot);
    break_part(s, c, other, repair_time(k, x));
  }
  if (!hit.slots.empty()) hit_job(s, hit);
}

/// One of several, of which a part tolerates the loss of some.
void lose_redundancy(operation_state& s, std::int32_t c, std::int64_t tray, const chance& x) {
  const component& k = of(s, c);
  std::int64_t& broken = s.broken_of[{c, tray}];
  ++broken;
  order_at(s, repair_time(k, x), {.kind = operation_event_kind::mended, .component = c, .index = tray});
  if (broken != k.tolerated + 1) return;
  const tray_range r = trays_of(part_down(k), tray, s.machine.shape);
  const job_hit hit{c, k.takes_down, detection_time(s, k, x), slots_in(s, r)};
  break_trays(s.machine, r);
  if (!hit.slots.empty()) hit_job(s, hit);
}

void fail(operation_state& s, std::int32_t c) {
  const component& k = of(s, c);
  const failure_model& m = s.setup->failures;
  const chance x = chance_of(s.draws[at(c)]);
  order_failure(s, c);
  if (m.clock == failure_clock::up && !is_running(s)) return;
  if (x.accepted * std::max<double>(1, m.early_factor) >= early_rate(m, seconds::from_base(s.now))) return;
  const std::int64_t tray = tray_that_fails(s, k, x);
  if (tray < 0) return;
  const bool of_tray = k.of == cluster_part::gpu || k.of == cluster_part::tray;
  if (of_tray && s.machine.causes[at(tray)] > 0) return;  // what is off does not fail
  ++s.outcome.failures;
  ++s.outcome.tolls[at(c)].failures;
  if (k.effect == failure_effect::nothing) return;
  if (k.tolerated > 0) lose_redundancy(s, c, tray, x);
  else if (k.effect == failure_effect::slows) slow_down(s, c, tray, x);
  else if (k.effect == failure_effect::corrupts) corrupt(s, c, tray, x);
  else stop_part(s, c, tray, x);
  s.outcome.least_trays_up =
      std::min(s.outcome.least_trays_up, static_cast<double>(s.machine.shape.trays() - s.machine.broken));
}

void mend(operation_state& s, const operation_event& e) {
  const component& k = of(s, e.component);
  if (k.tolerated > 0) {
    const std::int64_t left = --s.broken_of[{e.component, e.index}];
    if (left != k.tolerated) return;
  }
  mend_trays(s.machine, trays_of(part_down(k), e.index, s.machine.shape));
  look_for_trays(s);
}

bool has_spare(const operation_state& s, std::int64_t tray) {
  const tray_range rack = trays_of(cluster_part::rack, tray, s.machine.shape);
  for (std::int64_t t = rack.first; t < rack.first + rack.count; ++t)
    if (s.machine.slot_of[at(t)] < 0 && s.machine.causes[at(t)] == 0) return true;
  return !s.machine.free_racks.empty();
}

std::vector<operation_state::slow_part>::iterator find_slow(operation_state& s, std::int64_t number) {
  return std::find_if(s.slow.begin(), s.slow.end(), [&](const auto& p) { return p.number == number; });
}

/// Replaces a slow part after a save, if the job runs and a spare is there.
void evict(operation_state& s, const operation_event& e) {
  const auto found = find_slow(s, e.index);
  if (found == s.slow.end()) return;
  const std::int64_t tray = found->tray;
  const bool used = s.machine.slot_of[at(tray)] >= 0;
  if (used && !has_spare(s, tray)) return;
  s.slow.erase(found);
  break_trays(s.machine, {tray, 1});
  order_at(s, of(s, e.component).repair.base(),
           {.kind = operation_event_kind::mended, .component = e.component, .index = tray});
  if (!used) return;
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

void choose_lemons(operation_state& s, std::uint64_t seed) {
  const double wanted = s.setup->failures.lemons.share * static_cast<double>(s.machine.shape.trays());
  if (!(wanted > 0)) return;
  std::mt19937_64 g(mixed(seed ^ 0x6c656d6f6e));
  const auto count = std::max<std::size_t>(1, static_cast<std::size_t>(wanted + 0.5));
  while (s.lemons.size() < count) {
    const std::int64_t tray = below(g, s.machine.shape.trays());
    if (std::find(s.lemons.begin(), s.lemons.end(), tray) == s.lemons.end()) s.lemons.push_back(tray);
  }
}

}  // namespace

seconds save_interval(const operation_setup& s, const std::vector<save_times>& tiers) {
  const seconds wanted = s.save.interval ? *s.save.interval : best_interval(mean_costs(s, tiers));
  return seconds::from_base(start_clock(tiers, wanted).interval);
}

restart_costs mean_costs(const operation_setup& s, const std::vector<save_times>& tiers) {
  const std::int64_t gpus = s.asked.slots * s.cluster.gpus_per_tray;
  double a_day = 0, of_hardware = 0;
  for (const component& k : s.failures.components) {
    if (k.effect != failure_effect::stops || k.tolerated.peek() > 0) continue;
    const bool program = k.of == cluster_part::process;
    const double share = program || k.of == cluster_part::site
                             ? 1
                             : static_cast<double>(s.asked.slots) / static_cast<double>(s.cluster.trays());
    const double stops = failures_per_day(k, s.cluster, gpus) * share;
    a_day += stops;
    if (!program) of_hardware += stops;
  }
  return {
      seconds::from_base(86400 / a_day), mean_stall(tiers),
      s.recovery.mean_restart(gpus) + s.recovery.spare_ready.read() * (of_hardware / a_day) + tiers.back().load};
}

std::vector<save_times> tiers_of(const operation_setup& s) {
  std::vector<save_times> out;
  for (const save_tier& t : s.save.tiers)
    out.push_back(times_of(t, s.save, s.asked.slots, s.asked.slots * s.cluster.gpus_per_tray));
  return out;
}

operation_state begin_operation(const operation_setup& setup, std::uint64_t seed) {
  operation_state s;
  s.setup = &setup;
  s.machine = whole_machine(setup.cluster, setup.asked);
  const std::vector<save_times> tiers = tiers_of(setup);
  s.clock = start_clock(tiers, save_interval(setup, tiers));
  s.replica_out.resize(at(setup.replicas));
  s.replica_restarts.resize(at(setup.replicas));
  s.replica_epoch.resize(at(setup.replicas));
  const auto kinds = static_cast<std::int32_t>(setup.failures.components.size());
  s.outcome.tolls.resize(at(kinds));
  s.outcome.least_trays_up = static_cast<double>(setup.cluster.trays());
  for (std::int32_t c = 0; c < kinds; ++c) {
    s.draws.emplace_back(mixed(mixed(seed) + static_cast<std::uint64_t>(c)));
    order_failure(s, c);
  }
  choose_lemons(s, seed);
  if (setup.maintenance.every > seconds{})
    order_at(s, setup.maintenance.every.base(), {.kind = operation_event_kind::maintenance});
  order_finish(s);
  return s;
}

void happen(operation_state& s, double now, const operation_event& e) {
  account(s, now);
  switch (e.kind) {
    case operation_event_kind::failure:
      fail(s, e.component);
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
  }
}

operation_outcome end_operation(operation_state& s, double end) {
  account(s, end);
  close_span(s);
  s.outcome.progress = s.clock.progress;
  s.outcome.saves = s.clock.saves;
  s.outcome.wall = s.outcome.finished ? *s.outcome.finished : end;
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
