#include "operation/strikes.hpp"

#include <algorithm>
#include <limits>

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

/// GPUs whose programs fail: the job's, or those of all jobs that may be.
std::int64_t gpus_of_programs(const operation_state& s) {
  return s.alone ? s.machine.asked.slots * s.machine.shape.gpus_per_tray : s.machine.shape.gpus();
}

double life(operation_state& s, std::int32_t c) {
  const component& k = component_of(s, c);
  return weibull(s.random_sources[at(c)], k.shape) * k.mtbf.base();
}

/// Parts with lives of their own are new at first.
void begin_lives(operation_state& s, std::int32_t c) {
  const component& k = component_of(s, c);
  if (!k.ages) return;
  const auto count = static_cast<std::int64_t>(count_of(k, s.machine.shape, 0));
  for (std::int64_t i = 0; i < count; ++i) s.lives[at(c)].emplace(life(s, c), i);
}

/// Orders the next failure of a kind.
void order_failure(operation_state& s, std::int32_t c) {
  const component& k = component_of(s, c);
  if (k.ages) {
    if (!s.lives[at(c)].empty())
      order_at(s, s.lives[at(c)].top().first - s.now, {.kind = operation_event_kind::failure, .component = c});
    return;
  }
  const double a_day = failures_per_day(k, s.machine.shape, gpus_of_programs(s)) *
                       (k.notice ? 1 : std::max<double>(1, s.setup->failures.early_factor));
  if (!(a_day > 0)) return;
  order_at(s, weibull(s.random_sources[at(c)], k.shape) * 86400 / a_day,
           {.kind = operation_event_kind::failure, .component = c});
}

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

/// The first tray of the part in which component `number` of a kind is.
std::int64_t tray_with(const operation_state& s, const component& k, std::int64_t number) {
  const cluster_shape& shape = s.machine.shape;
  const std::int64_t part = number / k.each.read();
  if (k.of == cluster_part::gpu) return part / shape.gpus_per_tray;
  if (k.of == cluster_part::tray) return part;
  if (k.of == cluster_part::leaf) return part / shape.rails * shape.trays_of_leaf();
  return part * trays_of(k.of, 0, shape).count;
}

/// How many parts of this kind begin at the same tray: the GPUs of a tray, or the leaves of a group of trays.
std::int64_t parts_beside(const operation_state& s, const component& k) {
  if (k.of == cluster_part::gpu) return s.machine.shape.gpus_per_tray;
  return k.of == cluster_part::leaf ? s.machine.shape.rails : 1;
}

/// Which of them has lost a component: the place of the sample among all of them.
std::int64_t part_that_fails(const operation_state& s, const component& k, const chance& x) {
  const std::int64_t beside = parts_beside(s, k),
                     all = k.of == cluster_part::leaf ? s.machine.shape.leaf_groups() : s.machine.shape.trays();
  return picked(x.pick, all * beside) % beside;
}

/// The first tray of the part that fails; -1: a lemon that was replaced, so that nothing fails.
std::int64_t tray_that_fails(operation_state& s, const component& k, const chance& x) {
  const cluster_shape& shape = s.machine.shape;
  if (k.of == cluster_part::rack) return picked(x.pick, shape.racks) * shape.trays_per_rack;
  if (k.of == cluster_part::leaf) return picked(x.pick, shape.leaf_groups()) * shape.trays_of_leaf();
  if (k.of == cluster_part::row) return picked(x.pick, shape.rows()) * shape.racks_per_row * shape.trays_per_rack;
  if (k.of == cluster_part::site) return 0;
  if (k.of == cluster_part::process)
    return s.alone ? s.machine.tray_of[at(picked(x.pick, s.machine.asked.slots))]
                   : picked(x.pick, s.machine.shape.trays());
  const lemon_trays& l = s.setup->failures.lemons;
  if (k.notice || s.lemons.empty() || x.lemon >= l.failures) return picked(x.pick, shape.trays());
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

bool is_down(const operation_state& s, const tray_range& r) {
  const auto first = s.machine.causes.begin() + static_cast<std::ptrdiff_t>(r.first);
  return std::all_of(first, first + static_cast<std::ptrdiff_t>(r.count), [](auto causes) { return causes > 0; });
}

void slow_down(operation_state& s, std::int32_t c, std::int64_t tray, const chance& x) {
  const component& k = component_of(s, c);
  const bool everywhere = k.takes_down == cluster_part::site;
  const std::int64_t number = s.slow_parts++;
  s.slow.push_back({number, everywhere ? tray_range{} : trays_of(part_down(k), tray, s.machine.shape), k.speed});
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
  const double mean =
      (component_of(s, c).detection ? *component_of(s, c).detection : s.setup->recovery.watchdog).base();
  order_at(s, x.found * mean, {.kind = operation_event_kind::corruption_found, .component = c, .index = tray});
}

/// The part of which another tray fails with this one; nothing: this one fails alone.
std::optional<cluster_part> fails_with(const failure_model& m, double sample) {
  if (sample < m.together) return cluster_part::rack;
  if (sample < m.together + m.together_leaf) return cluster_part::leaf;
  if (sample < m.together + m.together_leaf + m.together_row) return cluster_part::row;
  return std::nullopt;
}

/// Time until a copy is complete that outlives the loss of a part; nothing if no tier has one.
std::optional<double> time_to_save(const operation_state& s, cluster_part lost) {
  std::optional<double> out;
  for (const save_times& t : s.clock.tiers)
    if (t.survives >= lost)
      out = std::min(out.value_or(std::numeric_limits<double>::infinity()), (t.stall + t.drain).base());
  return out;
}

/// A part of which its seller says that it will be taken back. The job works until the save before it.
void warn(operation_state& s, std::int32_t c, std::int64_t tray, const chance& x) {
  const component& k = component_of(s, c);
  const std::int64_t number = s.warnings++;
  const double notice = k.notice->base();
  s.departures[number] = {c, tray, repair_time(k, x)};
  const auto save = time_to_save(s, part_lost(k.takes_down, s.machine.shape));
  if (save && *save > 0 && *save <= notice && !drops_replicas(s.setup->recovery.mode))
    order_at(s, notice - *save, {.kind = operation_event_kind::last_save, .component = c, .index = number});
  order_at(s, notice, {.kind = operation_event_kind::reclaim, .component = c, .index = number});
}

/// A component that stops what uses it.
void stop_part(operation_state& s, std::int32_t c, std::int64_t tray, const chance& x) {
  const component& k = component_of(s, c);
  job_hit hit{c, part_lost(k.takes_down, s.machine.shape), detection_time(s, k, x), {}};
  if (k.takes_down == cluster_part::process) {
    hit.slots = {s.machine.slot_of[at(tray)]};
    if (hit.slots.front() >= 0) hit_job(s, hit);
    return;
  }
  hit.slots = slots_in(s, trays_of(part_down(k), tray, s.machine.shape));
  break_part(s, c, tray, repair_time(k, x));
  const bool of_a_tray = part_down(k) == cluster_part::tray && k.of != cluster_part::process;
  if (const auto with = of_a_tray ? fails_with(s.setup->failures, x.second) : std::nullopt) {
    const tray_range around = trays_of(*with, tray, s.machine.shape);
    const std::int64_t other = around.first + picked(x.second_pick, around.count);
    for (const std::int32_t slot : slots_in(s, {other, 1})) hit.slots.push_back(slot);
    break_part(s, c, other, repair_time(k, x));
  }
  if (!hit.slots.empty()) hit_job(s, hit);
}

/// Breaks one of a group of components of which a part tolerates some losses.
void lose_redundancy(operation_state& s, const strike& f) {
  const auto& [c, tray, x, beside] = f;
  const component& k = component_of(s, c);
  const std::int64_t part = tray * parts_beside(s, k) + beside;
  std::int64_t& broken = s.broken_of[{c, part}];
  ++broken;
  order_at(s, repair_time(k, x), {.kind = operation_event_kind::mended, .component = c, .index = part});
  if (broken != k.tolerated + 1) return;
  const tray_range r = trays_of(part_down(k), tray, s.machine.shape);
  const job_hit hit{c, part_lost(k.takes_down, s.machine.shape), detection_time(s, k, x), slots_in(s, r)};
  break_trays(s.machine, r);
  if (!hit.slots.empty()) hit_job(s, hit);
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

std::optional<strike> next_strike(operation_state& s, std::int32_t c) {
  const component& k = component_of(s, c);
  const failure_model& m = s.setup->failures;
  const chance x = chance_of(s.random_sources[at(c)]);
  std::int64_t tray = -1, beside = 0;
  if (k.ages) {
    const std::int64_t number = s.lives[at(c)].top().second;
    s.lives[at(c)].pop();
    s.lives[at(c)].emplace(s.now + repair_time(k, x) + life(s, c), number);
    tray = tray_with(s, k, number);
    beside = number / k.each.read() % parts_beside(s, k);
  }
  order_failure(s, c);
  if (m.clock == failure_clock::up && !is_running(s) && !k.notice) return std::nullopt;
  if (!k.ages) {
    const bool rare = x.accepted * std::max<double>(1, m.early_factor) >= early_rate(m, seconds::from_base(s.now));
    if (rare && !k.notice) return std::nullopt;
    tray = tray_that_fails(s, k, x);
    beside = part_that_fails(s, k, x);
  }
  if (tray < 0) return std::nullopt;
  const bool of_tray = k.of == cluster_part::gpu || k.of == cluster_part::tray;
  if (of_tray && s.machine.causes[at(tray)] > 0) return std::nullopt;  // what is off does not fail
  if (k.notice && is_down(s, trays_of(part_down(k), tray, s.machine.shape))) return std::nullopt;
  ++s.outcome.failures;
  ++s.outcome.tolls[at(c)].failures;
  return strike{c, tray, x, beside};
}

void suffer(operation_state& s, const strike& f) {
  const component& k = component_of(s, f.component);
  if (k.effect == failure_effect::nothing) return;
  if (k.notice) warn(s, f.component, f.tray, f.sample);
  else if (k.tolerated > 0) lose_redundancy(s, f);
  else if (k.effect == failure_effect::slows) slow_down(s, f.component, f.tray, f.sample);
  else if (k.effect == failure_effect::corrupts) corrupt(s, f.component, f.tray, f.sample);
  else stop_part(s, f.component, f.tray, f.sample);
  s.outcome.min_trays_up =
      std::min(s.outcome.min_trays_up, static_cast<double>(s.machine.shape.trays() - s.machine.broken));
}

void break_part(operation_state& s, std::int32_t c, std::int64_t tray, double repair) {
  break_trays(s.machine, trays_of(part_down(component_of(s, c)), tray, s.machine.shape));
  order_at(s, repair, {.kind = operation_event_kind::mended, .component = c, .index = tray});
}

void save_before_reclaim(operation_state& s, const operation_event& e) {
  const operation_state::departure& d = s.departures.at(e.index);
  if (!is_running(s) ||
      !uses(s.machine, trays_of(part_down(component_of(s, d.component)), d.tray, s.machine.shape)))
    return;
  s.saves_for = e.index;
  stop_to_save(s, d.component);
}

void reclaim(operation_state& s, const operation_event& e) {
  const operation_state::departure d = s.departures.extract(e.index).mapped();
  const component& k = component_of(s, d.component);
  const tray_range r = trays_of(part_down(k), d.tray, s.machine.shape);
  const job_hit hit{d.component, part_lost(k.takes_down, s.machine.shape), 0, slots_in(s, r)};
  const std::optional<double> save = time_to_save(s, hit.lost);
  const bool in_no_time = is_running(s) && save && !(*save > 0),
             saved = s.phase == gpu_use::saving && s.saves_for == e.index;
  if (save && !hit.slots.empty() && (in_no_time || saved)) keep_progress(s, *save);  // what had time is filled
  break_part(s, d.component, d.tray, d.back);
  s.gone += r.count;
  s.outcome.min_trays_up =
      std::min(s.outcome.min_trays_up, static_cast<double>(s.machine.shape.trays() - s.machine.broken));
  if (!hit.slots.empty()) hit_job(s, hit);
}

void find_corruption(operation_state& s, const operation_event& e) {
  if (s.phase == gpu_use::after_end) return;
  if (!is_running(s)) {
    order_at(s, std::max(1.0, s.setup->recovery.watchdog.base()), e);
    return;
  }
  s.corrupted = 0;
  const std::int32_t slot = s.machine.slot_of[at(e.index)];
  break_part(s, e.component, e.index, component_of(s, e.component).repair.base());
  hit_whole_job(s, {e.component, cluster_part::tray, 0, {slot}, true});
}

void mend(operation_state& s, const operation_event& e) {
  const component& k = component_of(s, e.component);
  std::int64_t tray = e.index;
  if (k.tolerated > 0) {
    const std::int64_t left = --s.broken_of[{e.component, e.index}];
    if (left != k.tolerated) return;
    tray = e.index / parts_beside(s, k);
  }
  if (k.notice) s.gone -= trays_of(part_down(k), tray, s.machine.shape).count;
  mend_trays(s.machine, trays_of(part_down(k), tray, s.machine.shape));
  look_for_trays(s);
}

void begin_failures(operation_state& s, std::uint64_t seed) {
  const auto kinds = static_cast<std::int32_t>(s.setup->failures.components.size());
  for (std::int32_t c = 0; c < kinds; ++c) {
    s.random_sources.emplace_back(mixed(mixed(seed) + static_cast<std::uint64_t>(c)));
    s.lives.emplace_back();
    begin_lives(s, c);
    order_failure(s, c);
  }
  choose_lemons(s, seed);
}

}  // namespace nvlsim
