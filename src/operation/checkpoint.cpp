#include "nvlsim/operation/checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nvlsim {
namespace {

seconds copy_time(bytes state, bandwidth tray, const std::optional<constant<bandwidth>>& together,
                  std::int64_t trays) {
  const bandwidth all = tray * static_cast<double>(trays);
  return state / (together ? std::min(all, together->read()) : all);
}

/// The last of `saves` saves that went to a tier.
void note_copy(work_clock& c, std::size_t tier, work_clock::copy made) {
  c.copies[tier][1] = c.copies[tier][0];
  c.copies[tier][0] = made;
}

/// `count` saves, the last of which ends at `end` with `progress`, `cycle` seconds and `gained` progress apart.
struct save_run {
  std::int64_t count = 0;
  double end = 0, progress = 0, cycle = 0, gained = 0;
};

void note_saves(work_clock& c, const save_run& r) {
  for (std::size_t t = 0; t < c.tiers.size(); ++t) {
    const std::int64_t every = c.tiers[t].every, last = (c.saves + r.count) / every * every;
    for (std::int64_t n : {last - every, last}) {
      if (n <= c.saves) continue;
      const double before = static_cast<double>(c.saves + r.count - n);
      note_copy(c, t, {r.progress - before * r.gained, r.end - before * r.cycle + c.tiers[t].drain.base()});
    }
  }
  c.saves += r.count;
}

/// A tray's own rate at a place, or what the fabric carries to it.
bandwidth of_tray(bandwidth own, const save_tier& t, const save_policy& p) {
  return p.network && t.to != save_place::nvme ? std::min(own, *p.network) : own;
}

}  // namespace

bandwidth written_by_tray(const save_tier& t, const save_policy& p) { return of_tray(t.write, t, p); }
bandwidth read_by_tray(const save_tier& t, const save_policy& p) { return of_tray(t.read, t, p); }

seconds load_time(const save_tier& t, const save_policy& p, std::int64_t trays, std::int64_t gpus) {
  const bool stored = t.to == save_place::store;
  const bytes once = p.state + p.frozen, held = std::max(p.held, once),
              read = stored && p.readers == copy_readers::all ? held : once;
  seconds out = copy_time(read, read_by_tray(t, p), t.store_read, trays);
  if (const bytes carried = t.to == save_place::nvme ? held - read : held; p.network)
    out = std::max(out, carried / (*p.network * static_cast<double>(trays)));
  return stored ? out + p.plan_per_gpu.read() * static_cast<double>(gpus) : out;
}

save_times times_of(const save_tier& t, const save_policy& p, std::int64_t trays, std::int64_t gpus) {
  const seconds copy = copy_time(p.state, written_by_tray(t, p), t.store_write, trays);
  const seconds snapshot = p.state / (p.to_host.read() * static_cast<double>(gpus));
  save_times out;
  if (!p.unchanged) {
    out.stall = p.pause.read() + (t.asynchronous ? snapshot : copy);
    if (t.asynchronous) {
      out.drain = copy;
      out.stall += copy * (1 - t.draining);  // steps that the copy slows, as if they waited for it
    }
  }
  out.load = load_time(t, p, trays, gpus);
  out.every = t.every;
  // A neighbour in another rack outlives the rack; the drives of a tray only the process.
  if (t.to == save_place::neighbour) out.survives = cluster_part::rack;
  if (t.to == save_place::store) out.survives = cluster_part::site;
  return out;
}

seconds mean_stall(const std::vector<save_times>& tiers) {
  seconds out;
  for (const save_times& t : tiers) out += t.stall / static_cast<double>(t.every);
  return out;
}

work_clock start_clock(const std::vector<save_times>& tiers, seconds interval) {
  work_clock c;
  change_times(c, tiers, interval);
  c.copies.resize(tiers.size());
  return c;
}

void change_times(work_clock& c, const std::vector<save_times>& tiers, seconds interval) {
  const bool saves = c.in_cycle > c.interval;
  const double stalled = c.in_cycle - c.interval;
  c.tiers = tiers;
  c.stall = mean_stall(tiers).base();
  c.interval = interval.base();
  for (const save_times& t : tiers)
    c.interval = std::max(c.interval, t.drain.base() / static_cast<double>(t.every) - c.stall);
  // A save under way goes on; one that would have been sooner is due.
  c.in_cycle = saves ? c.interval + std::min(stalled, c.stall) : std::min(c.in_cycle, c.interval);
}

void advance(work_clock& c, double now, double dt, double speed) {
  const double cycle = c.interval + c.stall, end = now + dt;
  if (!(cycle > 0) || c.interval <= 0) {  // saves take no time: all work is kept at once
    c.progress += dt * speed;
    for (auto& copies : c.copies) copies = {work_clock::copy{c.progress, end}, {c.progress, end}};
    return;
  }
  const auto works_until = [&](double t) { return std::min(t, c.interval); };
  const double reached = c.in_cycle + dt;
  const auto done = static_cast<std::int64_t>(reached / cycle);
  const double left = std::max(0.0, reached - static_cast<double>(done) * cycle);
  double worked = works_until(left) - works_until(c.in_cycle);
  if (done > 0) {
    const double first = c.interval - works_until(c.in_cycle), others = static_cast<double>(done - 1) * c.interval;
    worked = first + others + works_until(left);
    note_saves(c, {done, end - left, c.progress + (first + others) * speed, cycle, c.interval * speed});
  }
  c.saving += dt - worked;
  c.progress += worked * speed;
  c.in_cycle = left;
}

double time_for(const work_clock& c, double more, double speed) {
  if (!(speed > 0)) return std::numeric_limits<double>::infinity();
  const double work = more / speed, in_stall = std::max(0.0, c.in_cycle - c.interval);
  if (c.interval <= 0) return work;
  const double until_save = c.interval - std::min(c.in_cycle, c.interval);
  if (work <= until_save && in_stall == 0) return work;
  const double rest = work - until_save, stall = c.stall - in_stall;
  const double saves = std::max(0.0, std::ceil(rest / c.interval * (1 - 1e-15)) - 1);
  return work + stall + saves * c.stall;
}

found_copy newest_copy(const work_clock& c, cluster_part lost, double now) {
  found_copy out{0, c.tiers.back().load};
  bool found = false;
  for (std::size_t t = 0; t < c.tiers.size(); ++t) {
    if (c.tiers[t].survives < lost) continue;
    for (const work_clock::copy& x : c.copies[t]) {
      if (x.complete > now || (found && x.progress <= out.progress)) continue;
      out = {x.progress, c.tiers[t].load};
      found = true;
    }
  }
  return out;
}

void go_back(work_clock& c, double progress) {
  c.progress = progress;
  c.in_cycle = 0;
  for (auto& copies : c.copies)
    for (work_clock::copy& x : copies)
      if (x.progress > progress) x = {progress, 0};
}

}  // namespace nvlsim
