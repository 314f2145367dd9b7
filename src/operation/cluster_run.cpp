#include "nvlsim/operation/cluster_run.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>

#include "nvlsim/operation/shared_store.hpp"
#include "nvlsim/scheduling/cluster_world.hpp"
#include "nvlsim/units/max_min.hpp"
#include "operation/job_phases.hpp"
#include "operation/strikes.hpp"

namespace nvlsim {
namespace {

/// Index of the state that represents the hardware: it has no job, and every failure comes from it.
constexpr std::int32_t hardware = -1;
/// Of the store that jobs load from.
constexpr std::int32_t shared_loads = -2;

/// A job that loads its state from the store, which others may do too.
struct store_load {
  std::uint64_t epoch = 0;  ///< of its phase
  double begin = 0;         ///< when it starts to read; before, it plans
  double left = 0;          ///< seconds of reading alone
  double share = 0;         ///< of the rate that it has alone
};

operation_setup hardware_of(const cluster_setup& c) {
  operation_setup out;
  out.cluster = c.shape;
  out.failures = c.failures;
  out.maintenance = c.maintenance;
  out.save.unchanged = true;
  out.save.interval = seconds::from_base(1);
  if (!c.members.empty()) out.recovery = c.members.front().life.recovery;  // when slow parts are found
  out.duration = c.queue.duration;
  return out;
}

class shared_cluster final : public cluster_world {
 public:
  shared_cluster(const cluster_setup& c, const std::vector<std::int32_t>& member_of_job, std::uint64_t seed)
      : setup_(c), hardware_setup_(hardware_of(c)), member_of_job_(member_of_job), jobs_of_(c.members.size(), -1),
        down_(at(c.shape.trays())) {
    for (std::size_t j = 0; j < member_of_job.size(); ++j)
      if (member_of_job[j] >= 0) jobs_of_[at(member_of_job[j])] = static_cast<std::int32_t>(j);
    base_ = begin_job(hardware_setup_, machine_without_job(c.shape, {}));
    base_.alone = false;
    base_.machine.notes_flips = true;
    begin_failures(base_, seed);
    if (c.maintenance.every > seconds{})
      order_at(base_, c.maintenance.every.base(), {.kind = operation_event_kind::maintenance});
    for (const cluster_member& m : c.members) {
      members_.push_back(begin_job(m.life, machine_without_job(c.shape, m.life.asked)));
      members_.back().alone = false;
      members_.back().absent = true;
      members_.back().machine.notes_moves = true;
      members_.back().phase = gpu_use::waiting;
      members_.back().outcome.began = -1;
    }
    take_orders();
  }

  double next() const override { return due_.empty() ? std::numeric_limits<double>::infinity() : due_.top().at; }

  void happen(queue_control& q) override {
    const due d = due_.top();
    due_.pop();
    if (d.whose == shared_loads && d.what.epoch != load_epoch_) return;
    now_ = d.at;
    if (d.whose == shared_loads) end_loads(q);
    else if (d.whose == hardware) happen_to_hardware(d.what, q);
    else happen_to(d.whose, d.what, q);
    tell_flips(q, d.what.component);
    take_orders();
  }

  bool steers(int job) const override { return member_of_job_[at(job)] >= 0; }

  void hold(int job, double now, const std::vector<int>& nodes) override {
    now_ = now;
    const std::int32_t m = member_of_job_[at(job)];
    for_others(m, [&](operation_state& s) { take(s, nodes); });
    if (m >= 0) {
      account(members_[at(m)], now);
      come(members_[at(m)], nodes);
    }
    if (m >= 0) share_store();
    take_orders();
  }

  void release(int job, double now, const std::vector<int>& nodes, attempt_end) override {
    now_ = now;
    const std::int32_t m = member_of_job_[at(job)];
    if (m >= 0) {
      account(members_[at(m)], now);
      go(members_[at(m)]);
    }
    for_others(m, [&](operation_state& s) { give_back(s, nodes); });
    if (m >= 0) share_store();
    take_orders();
  }

  void close(cluster_outcome& out, double end) {
    for (operation_state& s : members_) out.members.push_back(end_operation(s, end));
    out.cluster = end_operation(base_, end);
    for (const auto& [tray, x] : repairs_now_) keep_repair(x, end);
    std::stable_sort(repairs_.begin(), repairs_.end(),
                     [](const tray_repair& a, const tray_repair& b) { return a.begin < b.begin; });
    out.repairs = std::move(repairs_);
    out.repairs_left_out = repairs_left_out_;
  }

 private:
  struct due {
    double at;
    std::uint64_t number;  // of equal times the one that was ordered first
    std::int32_t whose;
    operation_event what;
    bool operator<(const due& o) const { return at > o.at || (at == o.at && number > o.number); }
  };

  void take_orders_of(operation_state& s, std::int32_t whose) {
    for (const operation_order& o : s.orders) {
      // Slow parts are found once, by the hardware.
      // Parts are taken back once, too.
      if (whose != hardware &&
          (o.what.kind == operation_event_kind::slow_found || o.what.kind == operation_event_kind::reclaim))
        continue;
      // A load ends when the store says so.
      if (whose != hardware && o.what.kind == operation_event_kind::phase_over && o.what.epoch == s.epoch &&
          loads_from_store(s))
        continue;
      push(o.at, whose, o.what);
    }
    s.orders.clear();
  }

  void take_orders() {
    take_orders_of(base_, hardware);
    for (std::size_t m = 0; m < members_.size(); ++m) take_orders_of(members_[m], static_cast<std::int32_t>(m));
    share_loads();
  }

  void push(double at_s, std::int32_t whose, const operation_event& e) {
    if (at_s <= setup_.queue.duration.base()) due_.push({at_s, number_++, whose, e});
  }

  static bool loads_from_store(const operation_state& s) {
    return !s.absent && s.phase == gpu_use::loading && s.load > 0 && s.load == s.clock.tiers.back().load.base() &&
           s.setup->save.tiers.back().store_read.has_value();
  }

  static double plan_time(const operation_state& s) {
    const auto gpus = static_cast<double>(s.machine.asked.slots * s.machine.shape.gpus_per_tray);
    return std::min(s.load, s.setup->save.plan_per_gpu.read().base() * gpus);
  }

  /// Bytes per second that a job reads if it has the store to itself.
  static double reads_alone(const operation_state& s) {
    const save_policy& p = s.setup->save;
    const bytes once = p.state + p.frozen, read = p.readers == copy_readers::all ? std::max(p.held, once) : once;
    return read.base() / std::max(1e-9, s.load - plan_time(s));
  }

  /// What loads have read until now.
  void advance_loads() {
    for (auto& [m, x] : loads_) {
      x.left -= x.share * std::max(0.0, now_ - std::max(loaded_until_, x.begin));
      x.left = std::max(0.0, x.left);
    }
    loaded_until_ = now_;
  }

  /// Jobs that load at one time share what the store serves: max-min, none more than it reads alone.
  void share_loads() {
    bool changed = false;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const operation_state& s = members_[m];
      const auto found = loads_.find(m);
      if (loads_from_store(s) == (found != loads_.end() && found->second.epoch == s.epoch)) continue;
      advance_loads();
      changed = true;
      loads_.erase(m);
      if (!loads_from_store(s)) continue;
      const double plan = plan_time(s);
      loads_[m] = {s.epoch, now_ + plan, s.load - plan, 0};
    }
    if (changed) order_loads();
  }

  void order_loads() {
    std::vector<double> most;
    double together = std::numeric_limits<double>::infinity(), next = together;
    for (auto& [m, x] : loads_) {
      x.share = 0;
      if (x.begin > now_) {
        next = std::min(next, x.begin);
        continue;
      }
      most.push_back(reads_alone(members_[m]));
      together = std::min(together, members_[m].setup->save.tiers.back().store_read->read().base());
    }
    const std::vector<double> rates = max_min_shares(most, together);
    std::size_t i = 0;
    for (auto& [m, x] : loads_) {
      if (x.begin > now_) continue;
      x.share = rates[i] / most[i];
      next = std::min(next, now_ + x.left / x.share);
      ++i;
    }
    ++load_epoch_;
    if (!loads_.empty())
      push(next, shared_loads, {.kind = operation_event_kind::phase_over, .epoch = load_epoch_});
  }

  /// A load begins to read, or is done.
  void end_loads(queue_control& q) {
    advance_loads();
    std::vector<std::size_t> done;
    for (const auto& [m, x] : loads_)
      if (x.begin <= now_ && x.left <= 1e-9 * (1 + now_)) done.push_back(m);
    for (const std::size_t m : done) {
      const operation_event over{.kind = operation_event_kind::phase_over, .epoch = loads_.at(m).epoch};
      loads_.erase(m);
      happen_to(static_cast<std::int32_t>(m), over, q);
    }
    order_loads();
  }

  template <class F>
  void for_others(std::int32_t member, F f) {
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (static_cast<std::int32_t>(m) != member) f(members_[m]);
  }

  static void take(operation_state& s, const std::vector<int>& nodes) {
    for (const int n : nodes) break_trays(s.machine, {n, 1});
  }

  /// Returns trays. Jobs that lack some look again, once the queue has released them.
  void give_back(operation_state& s, const std::vector<int>& nodes) {
    for (const int n : nodes) mend_trays(s.machine, {n, 1});
    if (!s.absent && (s.phase == gpu_use::waiting || s.out > 0))
      s.orders.push_back({now_, {.kind = operation_event_kind::trays_free}});
  }

  std::int32_t holder_of(std::int64_t tray) const {
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (members_[m].machine.slot_of[at(tray)] >= 0) return static_cast<std::int32_t>(m);
    return hardware;
  }

  void happen_to_hardware(const operation_event& e, queue_control& q) {
    account(base_, now_);
    switch (e.kind) {
      case operation_event_kind::failure:
        strike_all(e.component, q);
        break;
      case operation_event_kind::slow_found:
        find_slow_part(e, q);
        break;
      case operation_event_kind::maintenance:
        maintain(e, q);
        break;
      case operation_event_kind::reclaim:
        nvlsim::happen(base_, now_, e);
        for (std::size_t m = 0; m < members_.size(); ++m) {
          nvlsim::happen(members_[m], now_, e);
          settle(static_cast<std::int32_t>(m), q);
        }
        break;
      default:
        nvlsim::happen(base_, now_, e);
    }
  }

  void strike_all(std::int32_t component, queue_control& q) {
    const std::optional<strike> x = next_strike(base_, component);
    if (!x) return;
    const std::int32_t holder = holder_of(x->tray);
    const bool stopped = holder >= 0 && members_[at(holder)].phase != gpu_use::useful;
    if (setup_.failures.clock == failure_clock::up && stopped && !setup_.failures.components[at(component)].notice)
      return;
    suffer(base_, *x);
    for (std::size_t m = 0; m < members_.size(); ++m) {
      account(members_[m], now_);
      suffer(members_[m], *x);
      settle(static_cast<std::int32_t>(m), q);
    }
  }

  std::vector<std::int32_t> holders_of(const tray_range& r) const {
    std::vector<std::int32_t> out;
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (uses(members_[m].machine, r)) out.push_back(static_cast<std::int32_t>(m));
    return out;
  }

  /// Whether all jobs on the trays find others, each apart from those that the ones before it take.
  bool all_can_leave(const tray_range& r, const std::vector<std::int32_t>& holders) const {
    std::vector<std::int32_t> taken;
    for (const std::int32_t m : holders) {
      machine_state trial = members_[at(m)].machine;
      trial.trail.clear();
      for (const std::int32_t t : taken) break_trays(trial, {t, 1});
      if (!leaves(trial, r)) return false;
      for (const auto& [from, to] : trial.trail) taken.push_back(to);
    }
    return true;
  }

  /// A part that some job cannot do without is kept; else it goes to repair for all.
  void find_slow_part(const operation_event& e, queue_control& q) {
    const auto part = std::find_if(base_.slow.begin(), base_.slow.end(),
                                   [&](const operation_state::slow_part& p) { return p.number == e.index; });
    if (part == base_.slow.end()) return;
    const std::vector<std::int32_t> holders = holders_of(part->trays);
    if (std::any_of(holders.begin(), holders.end(), [&](std::int32_t m) { return restarts(members_[at(m)]); })) {
      order_at(base_, std::max(1.0, base_.setup->recovery.find_slow.base()), e);
      return;
    }
    if (!all_can_leave(part->trays, holders)) return;
    nvlsim::happen(base_, now_, e);
    for (operation_state& s : members_) nvlsim::happen(s, now_, e);
    for (const std::int32_t m : holders) settle(m, q);
  }

  /// `e.epoch`: 0 when it begins, 1 when it is over.
  void maintain(const operation_event& e, queue_control& q) {
    const maintenance_plan& plan = setup_.maintenance;
    const auto trays = static_cast<int>(setup_.shape.trays());
    if (e.epoch == 1) {
      for (int n = 0; n < trays; ++n) q.bring_up(n);
      return;
    }
    order_at(base_, plan.lasts.base(), {.kind = operation_event_kind::maintenance, .epoch = 1});
    order_at(base_, (plan.every + plan.lasts).base(), {.kind = operation_event_kind::maintenance});
    for (int n = 0; n < trays; ++n) q.take_down(n);
    for (operation_state& s : members_) {
      account(s, now_);
      if (!s.absent && s.phase != gpu_use::after_end) stop_planned(s, gpu_use::maintenance, plan.lasts.base());
    }
  }

  void happen_to(std::int32_t m, const operation_event& e, queue_control& q) {
    operation_state& s = members_[at(m)];
    if (e.kind == operation_event_kind::corruption_found) {
      const std::uint16_t before = s.machine.causes[at(e.index)];
      nvlsim::happen(s, now_, e);
      if (s.machine.causes[at(e.index)] > before) {  // its tray goes to repair, for all
        const double repair = component_of(s, e.component).repair.base();
        break_part(base_, e.component, e.index, repair);
        for_others(m, [&](operation_state& other) { break_part(other, e.component, e.index, repair); });
      }
    } else {
      const bool looks = s.phase == gpu_use::deciding || s.phase == gpu_use::stalled;
      if (e.kind == operation_event_kind::phase_over && e.epoch == s.epoch && looks) clear_spares(m, q);
      nvlsim::happen(s, now_, e);
    }
    settle(m, q);
  }

  /// Tells the queue what a job did: it moved, is done, or waits for trays that weaker jobs hold.
  void settle(std::int32_t m, queue_control& q) {
    operation_state& s = members_[at(m)];
    if (s.absent) return;
    if (s.phase == gpu_use::after_end) {
      q.finish(jobs_of_[at(m)]);
      return;
    }
    if (s.phase == gpu_use::waiting && clear_spares(m, q)) look_for_trays(s);
    tell_move(m, q);
  }

  void tell_move(std::int32_t m, queue_control& q) {
    std::set<int> lost, gained;
    for (const auto& [from, to] : members_[at(m)].machine.trail) {  // a tray that left and returned has not moved
      if (gained.erase(from) == 0) lost.insert(from);
      if (lost.erase(to) == 0) gained.insert(to);
    }
    members_[at(m)].machine.trail.clear();
    const std::vector<int> from(lost.begin(), lost.end()), to(gained.begin(), gained.end());
    if (from.empty()) return;
    for_others(m, [&](operation_state& s) {
      take(s, to);
      give_back(s, from);
    });
    q.move(jobs_of_[at(m)], from, to);
  }

  static std::int64_t free_trays(const machine_state& m, const tray_range& rack) {
    std::int64_t out = 0;
    for (std::int64_t t = rack.first; t < rack.first + rack.count; ++t)
      out += m.causes[at(t)] == 0 && m.slot_of[at(t)] < 0;
    return out;
  }

  /// Evicts weaker jobs from trays in the racks where a job lacks some. Whether it got one.
  bool clear_spares(std::int32_t m, queue_control& q) {
    bool any = false;
    std::map<std::int64_t, std::int64_t> free;  // by rack: trays that it can have without that
    const machine_state& machine = members_[at(m)].machine;
    for (const std::int32_t slot : std::vector<std::int32_t>(machine.hurt)) {
      const tray_range rack = trays_of(cluster_part::rack, machine.tray_of[at(slot)], machine.shape);
      if (std::int64_t& unused = free.try_emplace(rack.first, free_trays(machine, rack)).first->second;
          unused > 0) {
        --unused;
        continue;
      }
      for (std::int64_t t = rack.first; t < rack.first + rack.count; ++t) {
        if (base_.machine.causes[at(t)] > 0 || machine.slot_of[at(t)] >= 0) continue;
        if (q.clear_for(jobs_of_[at(m)], static_cast<int>(t))) {
          any = true;
          break;
        }
      }
    }
    return any;
  }

  /// Jobs that train at one time share the store that they save to.
  void share_store() {
    std::vector<std::size_t> writers;
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (!members_[m].absent && !setup_.members[m].life.save.unchanged) writers.push_back(m);
    const auto [known, added] = times_of_writers_.try_emplace(writers);
    if (added) known->second = times_together(writers);
    for (std::size_t i = 0; i < writers.size(); ++i) {
      operation_state& s = members_[writers[i]];
      account(s, now_);
      change_times(s.clock, known->second[i], save_interval(*s.setup, known->second[i]));
      order_finish(s);
    }
  }

  /// The times of saves of jobs that write at one time. Copies that take longer may lengthen what they are made
  /// of.
  std::vector<std::vector<save_times>> times_together(const std::vector<std::size_t>& writers) const {
    std::vector<std::vector<save_times>> out;
    for (const std::size_t m : writers) out.push_back(tiers_of(setup_.members[m].life));
    for (int round = 0; round < 3 && writers.size() > 1; ++round) {
      std::vector<store_writer> all;
      std::vector<std::pair<std::size_t, std::size_t>> whose;  // writer and tier
      bandwidth together = bandwidth::from_base(std::numeric_limits<double>::infinity());
      for (std::size_t i = 0; i < writers.size(); ++i) {
        const operation_setup& life = setup_.members[writers[i]].life;
        for (std::size_t t = 0; t < life.save.tiers.size(); ++t) {
          const save_tier& tier = life.save.tiers[t];
          if (tier.to != save_place::store || !tier.store_write || !(life.save.state > bytes{})) continue;
          together = std::min(together, tier.store_write->read());
          const seconds cycle = save_interval(life, out[i]) + mean_stall(out[i]);
          all.push_back({life.save.state, written_by_tray(tier, life.save) * static_cast<double>(life.asked.slots),
                         cycle * static_cast<double>(out[i][t].every)});
          whose.emplace_back(i, t);
        }
      }
      if (all.size() < 2) break;
      const std::vector<seconds> copies = copy_times_together(all, together);
      for (std::size_t w = 0; w < whose.size(); ++w) {
        const auto [i, t] = whose[w];
        const save_policy& save = setup_.members[writers[i]].life.save;
        save_times& times = out[i][t];
        if (save.tiers[t].asynchronous) times.drain = copies[w];
        else times.stall = save.pause.read() + copies[w];
      }
    }
    return out;
  }

  /// Trays that broke or came back go out of the queue's service, or into it.
  void tell_flips(queue_control& q, std::int32_t component) {
    std::vector<std::int32_t> flips;
    flips.swap(base_.machine.flips);
    for (const std::int32_t t : flips) {
      const bool down = base_.machine.causes[at(t)] > 0;
      if (down == down_[at(t)]) continue;
      down_[at(t)] = down;
      down ? q.take_down(t) : q.bring_up(t);
      note_repair(t, component);
    }
  }

  /// A tray broke or came back.
  void note_repair(std::int32_t tray, std::int32_t component) {
    if (down_[at(tray)]) repairs_now_[tray] = {tray, component, now_, 0};
    else if (const auto x = repairs_now_.extract(tray); !x.empty()) keep_repair(x.mapped(), now_);
  }

  void keep_repair(tray_repair x, double end) {
    x.end = end;
    if (repairs_.size() < max_tray_repairs) repairs_.push_back(x);
    else ++repairs_left_out_;
  }

  const cluster_setup& setup_;
  operation_setup hardware_setup_;
  const std::vector<std::int32_t>& member_of_job_;
  std::vector<std::int32_t> jobs_of_;                ///< by member
  std::vector<bool> down_;                           ///< by tray: as the queue knows it
  std::map<std::int32_t, tray_repair> repairs_now_;  ///< by tray
  std::vector<tray_repair> repairs_;                 ///< that are over
  std::int64_t repairs_left_out_ = 0;
  operation_state base_;
  std::vector<operation_state> members_;
  std::map<std::vector<std::size_t>, std::vector<std::vector<save_times>>> times_of_writers_;
  std::map<std::size_t, store_load> loads_;  ///< by member
  std::uint64_t load_epoch_ = 0;
  double loaded_until_ = 0;
  std::priority_queue<due> due_;
  std::uint64_t number_ = 0;
  double now_ = 0;
};

/// The jobs of all, by submission; and which member each is, or -1.
job_list all_jobs(const cluster_setup& c, std::vector<std::int32_t>& member_of_job) {
  job_list out = c.batch;
  member_of_job.assign(out.jobs.size(), -1);
  for (std::size_t m = 0; m < c.members.size(); ++m) {
    const cluster_member& x = c.members[m];
    batch_job j;
    j.name = x.name;
    j.submit = x.start;
    j.run = x.life.work.value_or(c.queue.duration);
    j.gpus = static_cast<std::int32_t>(x.life.asked.slots * c.shape.gpus_per_tray);
    j.nodes = static_cast<std::int32_t>(x.life.asked.slots);
    j.segment = static_cast<std::int32_t>(x.life.asked.per_rack);
    const auto named = [](std::vector<std::string>& names, const std::string& name) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found != names.end()) return static_cast<int>(found - names.begin());
      names.push_back(name);
      return static_cast<int>(names.size()) - 1;
    };
    j.user = named(out.users, x.name);
    j.queue = named(out.queues, x.queue);
    out.jobs.push_back(std::move(j));
    member_of_job.push_back(static_cast<std::int32_t>(m));
  }
  std::vector<std::size_t> order(out.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return out.jobs[a].submit < out.jobs[b].submit; });
  std::vector<batch_job> jobs;
  std::vector<std::int32_t> members;
  for (const std::size_t i : order) {
    jobs.push_back(std::move(out.jobs[i]));
    members.push_back(member_of_job[i]);
  }
  out.jobs = std::move(jobs);
  member_of_job = std::move(members);
  return out;
}

}  // namespace

cluster_outcome run_cluster(const cluster_setup& c, std::uint64_t seed) {
  cluster_outcome out;
  std::vector<std::int32_t> member_of_job;
  out.jobs = all_jobs(c, member_of_job);
  out.job_of.assign(c.members.size(), -1);
  for (std::size_t j = 0; j < member_of_job.size(); ++j)
    if (member_of_job[j] >= 0) out.job_of[at(member_of_job[j])] = static_cast<std::int32_t>(j);
  shared_cluster world(c, member_of_job, seed);
  out.schedule = schedule_jobs(out.jobs, c.queue, world);
  world.close(out, c.queue.duration.base());
  return out;
}

}  // namespace nvlsim
