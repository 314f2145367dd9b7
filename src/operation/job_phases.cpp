#include "operation/job_phases.hpp"

#include <algorithm>
#include <cmath>

#include "nvlsim/operation/shards.hpp"
#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

double& spent(operation_state& s, gpu_use u) { return s.outcome.gpu_seconds[static_cast<std::size_t>(u)]; }

double job_gpus(const operation_state& s) {
  return static_cast<double>(s.machine.asked.slots * s.machine.shape.gpus_per_tray);
}

double live_share(const operation_state& s) {
  const auto all = static_cast<double>(s.setup->replicas);
  return (all - static_cast<double>(s.out)) / all;
}

bool is_redundant(const operation_state& s) { return s.setup->recovery.mode == recovery_mode::redundant; }

/// Pace of the job over that with all replicas, one shard each and equal steps, if those that are left wait
/// `slowest` steps for the slowest of them. GPUs that are left do no more than their share.
double pace(const operation_state& s, double slowest) {
  const double step = 1 + static_cast<double>(s.shards - 1) * s.setup->further_shard + slowest;
  if (is_redundant(s)) return std::min(live_share(s), 1 / step);
  if (s.setup->recovery.batch == short_batch::kept && s.out > 0 && live_share(s) > 0) {
    const auto each = static_cast<double>(s.setup->micro_batches);  // of a replica, whole ones
    return each / std::ceil(each / live_share(s) * (1 - 1e-12)) / step;
  }
  return live_share(s) / step;
}

/// For how many steps replicas wait for the slowest, whose shards take independent times.
double slowest_of(const operation_state& s) {
  if (!(s.setup->spread > 0)) return 0;
  return s.setup->spread * std::sqrt(static_cast<double>(s.shards)) *
         largest_normal(static_cast<double>(s.setup->replicas - s.out));
}

/// Whether the job can do without the replicas that are out.
bool can_do_without(const operation_state& s, const std::vector<bool>& out) {
  const recovery_policy& r = s.setup->recovery;
  const std::int64_t left = std::count(out.begin(), out.end(), false);
  return left >= r.min_replicas && (!is_redundant(s) || shards_are_held(out, r.shards.copies));
}

component_toll* toll_of(operation_state& s) { return s.cause < 0 ? nullptr : &s.outcome.tolls[at(s.cause)]; }

void note_span(operation_state& s) {
  auto& spans = s.outcome.spans;
  if (spans.size() < max_spans && s.now > s.phase_begin)
    spans.push_back({s.phase_begin, s.now, s.phase, is_running(s) ? -1 : s.cause, s.clock.progress});
  s.phase_begin = s.now;
}

/// Enters a phase that lasts `seconds`; a negative time has no end of its own.
void enter(operation_state& s, gpu_use phase, double seconds) {
  note_span(s);
  s.phase = phase;
  ++s.epoch;
  if (seconds >= 0) order_at(s, seconds, {.kind = operation_event_kind::phase_over, .epoch = s.epoch});
}

void run_on(operation_state& s) {
  s.moved = 0;
  enter(s, gpu_use::useful, -1);
  order_finish(s);
}

void lose_work(operation_state& s, double lost) {
  const double gpu_seconds = lost * job_gpus(s);
  spent(s, gpu_use::useful) -= gpu_seconds;
  spent(s, gpu_use::redone) += gpu_seconds;
  if (component_toll* t = toll_of(s)) t->lost_gpu_seconds += gpu_seconds;
}

/// Goes back to the newest copy that is left; of a job whose numbers are wrong, to the last one before they were.
void restore(operation_state& s, const job_hit& h) {
  found_copy found = newest_copy(s.clock, h.lost, s.now);
  found.progress = std::min(found.progress, s.clock.progress);
  s.clean = std::min(s.clean, found.progress);
  if (h.corrupted) found.progress = s.clean;
  if (h.corrupted || !s.corrupted) s.clean = std::numeric_limits<double>::infinity();
  lose_work(s, s.clock.progress - found.progress);
  s.load = found.load.base();
  go_back(s.clock, found.progress);
}

/// Replicas that lack a tray are out; all others are in.
void count_replicas(operation_state& s) {
  std::fill(s.replica_out.begin(), s.replica_out.end(), false);
  std::fill(s.replica_restarts.begin(), s.replica_restarts.end(), false);
  for (const std::int32_t slot : s.machine.hurt) {
    const replica_range r = replicas_of(s.machine, slot, s.setup->replicas);
    for (std::int64_t i = r.first; i <= r.last; ++i) s.replica_out[at(i)] = true;
  }
  s.out = std::count(s.replica_out.begin(), s.replica_out.end(), true);
  share_shards(s);
}

/// Finds trays, then goes on with the restart or waits for a repair.
void place(operation_state& s) {
  const recovery_policy& r = s.setup->recovery;
  s.moved += move_hurt(s.machine);
  count_replicas(s);
  const bool enough =
      s.machine.hurt.empty() || (r.mode != recovery_mode::restart && can_do_without(s, s.replica_out));
  if (enough) enter(s, gpu_use::readying, s.moved > 0 ? r.spare_ready.base() : 0);
  else enter(s, gpu_use::waiting, -1);
}

void stop_whole(operation_state& s, const job_hit& h) {
  const bool was_running = is_running(s) || s.phase == gpu_use::stalled || s.phase == gpu_use::saving;
  if (!was_running && s.phase == gpu_use::waiting) return;
  ++s.outcome.stops;
  ++s.outcome.whole_stops;
  ++s.outcome.tolls[at(h.component)].stops;
  if (!was_running && s.setup->recovery.again == second_failure::queue) {
    ++s.pending;
    return;
  }
  s.cause = h.component;
  restore(s, h);
  s.detection = h.detection;
  enter(s, gpu_use::detecting, h.detection);
}

/// Replicas of a hit that are still in, in order.
std::vector<std::int64_t> replicas_hit(const operation_state& s, const job_hit& h) {
  std::vector<std::int64_t> out;
  for (const std::int32_t slot : h.slots) {
    const replica_range r = replicas_of(s.machine, slot, s.setup->replicas);
    for (std::int64_t i = r.first; i <= r.last; ++i) out.push_back(i);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// How much longer a load from the store takes when `loading` replicas do so at one time.
double load_factor(const operation_state& s, std::int64_t loading) {
  const save_tier& t = s.setup->save.tiers.back();
  const save_policy& p = s.setup->save;
  const bool from_store = s.load > 0 && s.load == s.clock.tiers.back().load.base();
  if (!t.store_read || !from_store || s.machine.asked.unit == 0) return 1;
  const double alone = (p.state + p.frozen).base() / s.load;
  return std::max(1.0, static_cast<double>(loading) * alone / t.store_read->read().base());
}

/// Time of one replica from its hardware to the next step, if `loading` replicas load at one time.
double replica_restart(const operation_state& s, bool moved, std::int64_t loading) {
  const recovery_policy& r = s.setup->recovery;
  const auto gpus = static_cast<std::int64_t>(job_gpus(s)) / s.setup->replicas;
  return (r.decide.read() + r.init_of(gpus) + r.first_step.read()).base() + s.load * load_factor(s, loading) +
         (moved ? r.spare_ready.base() : 0);
}

/// Lets replicas restart whose trays are all up.
void restart_replicas(operation_state& s) {
  if (is_redundant(s) && !s.setup->recovery.shards.rejoin) return;
  const bool moved = move_hurt(s.machine) > 0;
  std::vector<bool> lacking(s.replica_out.size());
  for (const std::int32_t slot : s.machine.hurt) {
    const replica_range r = replicas_of(s.machine, slot, s.setup->replicas);
    for (std::int64_t i = r.first; i <= r.last; ++i) lacking[at(i)] = true;
  }
  std::int64_t loading = 0;  // those that restart already, and those that do now
  for (std::size_t i = 0; i < lacking.size(); ++i)
    loading += s.replica_out[i] && (s.replica_restarts[i] || !lacking[i]);
  for (std::size_t i = 0; i < lacking.size(); ++i) {
    if (!s.replica_out[i] || s.replica_restarts[i] || lacking[i]) continue;
    s.replica_restarts[i] = true;
    order_at(s, replica_restart(s, moved, loading),
             {.kind = operation_event_kind::rejoin,
              .index = static_cast<std::int64_t>(i),
              .epoch = ++s.replica_epoch[i]});
  }
}

/// Stall of the remaining replicas when one drops out, seconds. In the same step they recompute the shards that
/// only the lost one computed.
double stall_of(const operation_state& s, double makes_up) {
  return s.setup->recovery.replica_stall.base() + makes_up * s.setup->further_shard * s.setup->step_time.base();
}

/// Probability that a replica computes a shard that nobody else does, where each computes as few as cover the
/// batch. Their computations are spread over the shards as evenly as they can be.
double makes_up(const operation_state& s) {
  if (!is_redundant(s) || s.setup->recovery.shards.computed == shards_computed::held) return 0;
  const auto all = static_cast<double>(s.setup->replicas), each = static_cast<double>(s.shards);
  const double alone = std::clamp(2 * all / (each * (all - static_cast<double>(s.out))) - 1, 0.0, 1.0);
  return 1 - std::pow(1 - alone, each);
}

void drop_replicas(operation_state& s, const job_hit& h) {
  const std::vector<std::int64_t> hit = replicas_hit(s, h);
  std::int64_t dropped = 0;
  std::vector<bool> out = s.replica_out;
  for (const std::int64_t i : hit) {
    if (!out[at(i)]) ++dropped;
    out[at(i)] = true;
    ++s.replica_epoch[at(i)];  // a restart under way is void
    s.replica_restarts[at(i)] = false;
  }
  if (dropped > 0 && !can_do_without(s, out)) {
    stop_whole(s, h);
    return;
  }
  s.replica_out = out;
  s.load = s.clock.tiers.empty() ? 0 : s.clock.tiers.front().load.base();
  if (dropped == 0) {
    restart_replicas(s);
    return;
  }
  ++s.outcome.stops;
  ++s.outcome.tolls[at(h.component)].stops;
  s.cause = h.component;
  if (is_running(s) && !is_redundant(s)) {  // the step under way is lost: half of one, in the mean
    const double lost = std::min(s.clock.progress, s.setup->step_time.base() / 2 * speed_of(s));
    lose_work(s, lost);
    s.clock.progress -= lost;
  }
  const double stall = stall_of(s, makes_up(s));
  s.out += dropped;
  share_shards(s);
  if (s.phase == gpu_use::stalled && s.setup->recovery.again == second_failure::queue) ++s.pending;
  else enter(s, gpu_use::stalled, stall);
}

/// Whether a restart under way continues without the replicas that were hit. Before the search for trays it does:
/// that search finds which replicas lack some.
bool starts_without(operation_state& s, const job_hit& h) {
  if (s.phase == gpu_use::detecting || s.phase == gpu_use::deciding || s.phase == gpu_use::waiting) return true;
  std::vector<bool> out = s.replica_out;
  for (const std::int64_t i : replicas_hit(s, h)) out[at(i)] = true;
  if (!can_do_without(s, out)) return false;
  s.replica_out = out;
  s.out = std::count(out.begin(), out.end(), true);
  share_shards(s);
  return true;
}

/// The job is ready for the next step; unless failures hit it meanwhile.
void finish_restart(operation_state& s) {
  if (s.pending > 0) {
    --s.pending;
    enter(s, gpu_use::detecting, s.detection);
    return;
  }
  if (drops_replicas(s.setup->recovery.mode) && s.out > 0) restart_replicas(s);
  run_on(s);
}

}  // namespace

void share_shards(operation_state& s) {
  const shard_copies& x = s.setup->recovery.shards;
  if (!is_redundant(s)) return;
  s.shards = x.copies;
  if (x.computed == shards_computed::needed) s.shards = fewest_shards(s.replica_out, x.copies).value_or(x.copies);
}

void order_at(operation_state& s, double after, const operation_event& e) {
  s.orders.push_back({s.now + after, e});
}

double speed_of(const operation_state& s) {
  double slowest = 1;
  for (const operation_state::slow_part& p : s.slow)
    if (p.trays.count == 0 || uses(s.machine, p.trays)) slowest = std::min(slowest, p.speed);
  return pace(s, slowest_of(s)) * slowest;
}

void order_finish(operation_state& s) {
  if (!s.setup->work || !is_running(s)) return;
  ++s.epoch;
  const double left = std::max(0.0, s.setup->work->base() - s.clock.progress);
  const double time = time_for(s.clock, left, speed_of(s));
  if (std::isfinite(time)) order_at(s, time, {.kind = operation_event_kind::phase_over, .epoch = s.epoch});
}

void account(operation_state& s, double now) {
  const double dt = now - s.now;
  if (!(dt > 0)) return;
  if (s.absent) {
    s.now = now;
    return;
  }
  if (s.alone && s.phase == gpu_use::after_end) {  // the job has left; whoever has the cluster now looks after it
    spent(s, gpu_use::after_end) += static_cast<double>(s.machine.shape.gpus()) * dt;
    s.now = now;
    return;
  }
  const auto per_tray = static_cast<double>(s.machine.shape.gpus_per_tray);
  const auto hurt = static_cast<std::int64_t>(s.machine.hurt.size());
  const double used = static_cast<double>(s.machine.asked.slots - hurt) * per_tray;
  const double spare =
      static_cast<double>(s.machine.shape.trays() - s.machine.asked.slots - (s.machine.broken - hurt)) * per_tray;
  const bool owns_all = s.alone || s.machine.asked.slots == 0;  // not one of several jobs
  const std::int64_t gone = owns_all ? std::min(s.gone, s.machine.broken) : 0;
  spent(s, gpu_use::reclaimed) += static_cast<double>(gone) * per_tray * dt;
  spent(s, gpu_use::repair) += static_cast<double>(s.alone ? s.machine.broken - gone : hurt) * per_tray * dt;
  if (s.alone) spent(s, gpu_use::spare) += spare * dt;
  if (is_running(s)) {
    const double progress = s.clock.progress, saving = s.clock.saving;
    advance(s.clock, s.now, dt, speed_of(s));
    const double stalled = s.clock.saving - saving, worked = dt - stalled;
    const double useful = (s.clock.progress - progress) * job_gpus(s), live = worked * live_share(s) * job_gpus(s);
    const double copies = is_redundant(s) ? worked * (live_share(s) - pace(s, 0)) * job_gpus(s) : 0;
    spent(s, gpu_use::useful) += useful;
    spent(s, gpu_use::copies) += copies;
    spent(s, gpu_use::slow) += live - useful - copies;
    spent(s, gpu_use::saving) += stalled * used;
    spent(s, gpu_use::left_out) += worked * used - live;
  } else {
    spent(s, s.phase) += used * dt;
    if (component_toll* t = toll_of(s); t && s.phase != gpu_use::maintenance && s.phase != gpu_use::after_end)
      t->lost_gpu_seconds += used * dt;
  }
  s.now = now;
}

void hit_job(operation_state& s, const job_hit& h) {
  if (s.absent || s.phase == gpu_use::after_end || s.phase == gpu_use::maintenance) return;
  const bool works = is_running(s) || s.phase == gpu_use::stalled;
  if (drops_replicas(s.setup->recovery.mode) && works && !h.slots.empty()) {
    drop_replicas(s, h);
    return;
  }
  if (drops_replicas(s.setup->recovery.mode) && !works && !h.slots.empty() && starts_without(s, h)) return;
  if (s.setup->recovery.mode == recovery_mode::elastic && s.out > 0 && is_running(s) && !h.slots.empty()) {
    const std::vector<std::int64_t> hit = replicas_hit(s, h);
    if (std::all_of(hit.begin(), hit.end(), [&](std::int64_t i) { return s.replica_out[at(i)]; })) return;
  }
  stop_whole(s, h);
}

void hit_whole_job(operation_state& s, const job_hit& h) { stop_whole(s, h); }

void close_span(operation_state& s) { note_span(s); }

void stop_planned(operation_state& s, gpu_use phase, double lasts) {
  s.cause = -1;
  s.load = s.clock.tiers.front().load.base();
  for (auto& copies : s.clock.copies) copies = {work_clock::copy{s.clock.progress, s.now}, copies[0]};
  go_back(s.clock, s.clock.progress);
  enter(s, phase, lasts);
}

void stop_to_save(operation_state& s, std::int32_t component) {
  s.cause = component;
  enter(s, gpu_use::saving, -1);
}

void keep_progress(operation_state& s, double within) {
  for (std::size_t t = 0; t < s.clock.tiers.size(); ++t) {
    if ((s.clock.tiers[t].stall + s.clock.tiers[t].drain).base() > within) continue;
    auto& copies = s.clock.copies[t];
    copies = {work_clock::copy{s.clock.progress, s.now}, copies[0]};
  }
}

void come(operation_state& s, const std::vector<std::int32_t>& trays) {
  const recovery_policy& r = s.setup->recovery;
  occupy(s.machine, trays);
  const bool again = s.outcome.began >= 0;
  if (!again) s.outcome.began = s.now;
  const bool loads = s.setup->save.unchanged || s.clock.progress > 0;
  s.load = loads ? s.clock.tiers.back().load.base() : 0;
  s.absent = false;
  s.cause = -1;
  enter(s, gpu_use::readying, again ? r.spare_ready.base() : 0);
}

void go(operation_state& s) {
  if (s.phase != gpu_use::after_end) {
    s.cause = -1;
    restore(s, {-1, cluster_part::row, 0, {}, false});  // its next trays may be anywhere
    enter(s, gpu_use::waiting, -1);
  }
  vacate(s.machine);
  for (std::uint64_t& e : s.replica_epoch) ++e;
  count_replicas(s);
  s.pending = 0;
  s.absent = true;
}

void end_phase(operation_state& s) {
  const recovery_policy& r = s.setup->recovery;
  switch (s.phase) {
    case gpu_use::useful:
      s.outcome.finished = s.now;
      enter(s, gpu_use::after_end, -1);
      break;
    case gpu_use::detecting:
      enter(s, gpu_use::deciding, r.decide.base());
      break;
    case gpu_use::deciding:
    case gpu_use::maintenance:
      place(s);
      break;
    case gpu_use::readying:
      enter(s, gpu_use::initialising, r.init_of(static_cast<std::int64_t>(job_gpus(s))).base());
      break;
    case gpu_use::initialising:
      enter(s, gpu_use::loading, s.load);
      break;
    case gpu_use::loading:
      enter(s, gpu_use::first_step, r.first_step.base());
      break;
    case gpu_use::stalled:
      if (s.pending > 0) {
        --s.pending;
        enter(s, gpu_use::stalled, stall_of(s, makes_up(s)));
        break;
      }
      restart_replicas(s);
      run_on(s);
      break;
    case gpu_use::first_step:
      finish_restart(s);
      break;
    default:
      break;
  }
}

void look_for_trays(operation_state& s) {
  if (s.absent) return;
  if (s.phase == gpu_use::waiting) {
    place(s);
  } else if (drops_replicas(s.setup->recovery.mode)) {
    if (is_running(s) && s.out > 0) restart_replicas(s);
  } else if (is_running(s) && s.out > 0) {  // elastic: grows as soon as a replica has its trays again
    const std::int64_t before = s.out;
    s.moved += move_hurt(s.machine);
    std::int64_t lacking = 0;
    std::vector<bool> out(s.replica_out.size());
    for (const std::int32_t slot : s.machine.hurt) {
      const replica_range r = replicas_of(s.machine, slot, s.setup->replicas);
      for (std::int64_t i = r.first; i <= r.last; ++i) out[at(i)] = true;
    }
    lacking = std::count(out.begin(), out.end(), true);
    if (lacking < before) stop_planned(s, gpu_use::deciding, 0);
  }
}

void rejoin(operation_state& s, const operation_event& e) {
  const std::size_t i = at(e.index);
  if (e.epoch != s.replica_epoch[i] || !s.replica_restarts[i]) return;
  if (!is_running(s) && s.phase != gpu_use::stalled) return;  // the whole job restarts
  s.replica_restarts[i] = false;
  s.replica_out[i] = false;
  --s.out;
  share_shards(s);
  order_finish(s);
}

}  // namespace nvlsim
