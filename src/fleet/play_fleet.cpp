#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "nvlsim/fleet/fleet.hpp"
#include "nvlsim/units/max_min.hpp"
#include "nvlsim/units/random.hpp"

namespace nvlsim {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

struct replica {
  std::int64_t rack = 0;
  double ready_s = 0;  ///< `never` while it loads
  double loads_s = 0;  ///< from when on
  double left = 0;     ///< bytes to load
  double begin_s = 0;
};

/// GPUs that are free in each rack, and machines in repair.
class rack_space {
 public:
  rack_space(std::int64_t racks, std::int64_t each) : free_(static_cast<std::size_t>(racks), each) {}

  /// A rack for `gpus`: of those that hold them, the fullest. -1: none.
  std::int64_t take(std::int64_t gpus) {
    std::int64_t best = -1;
    for (std::size_t r = 0; r < free_.size(); ++r)
      if (free_[r] >= gpus && (best < 0 || free_[r] < free_[static_cast<std::size_t>(best)]))
        best = static_cast<std::int64_t>(r);
    if (best >= 0) free_[static_cast<std::size_t>(best)] -= gpus;
    return best;
  }
  std::int64_t racks() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t free(std::int64_t rack) const { return free_[static_cast<std::size_t>(rack)]; }
  void give(std::int64_t rack, std::int64_t gpus) { free_[static_cast<std::size_t>(rack)] += gpus; }
  void break_until(double time_s, std::int64_t rack, std::int64_t gpus) { broken_.push({time_s, rack, gpus}); }
  void repair(double now_s) {
    while (!broken_.empty() && broken_.top().until_s <= now_s) {
      give(broken_.top().rack, broken_.top().gpus);
      broken_.pop();
    }
  }

 private:
  struct repair_job {
    double until_s;
    std::int64_t rack, gpus;
    friend bool operator>(const repair_job& a, const repair_job& b) { return a.until_s > b.until_s; }
  };
  std::vector<std::int64_t> free_;
  std::priority_queue<repair_job, std::vector<repair_job>, std::greater<>> broken_;
};

/// The largest of the values of the last ticks.
class sliding_most {
 public:
  void add(std::int64_t tick, std::int64_t v, std::int64_t width) {
    while (!list_.empty() && list_.back().second <= v) list_.pop_back();
    list_.emplace_back(tick, v);
    while (list_.front().first <= tick - width) list_.pop_front();
  }
  std::int64_t most() const { return list_.front().second; }

 private:
  std::deque<std::pair<std::int64_t, std::int64_t>> list_;
};

struct service_state {
  std::vector<replica> replicas;  ///< ready ones and those that start
  double waiting = 0;             ///< requests that no replica has taken
  double again = 0;               ///< lost requests that come back in the next tick
  double hazard = 0, next_failure = 0;
  double rate = 0, in_flight = 0, attained = 0, e2e = 0;  ///< of a replica in the last tick
  std::deque<double> arrivals;                            ///< of the ticks in the window
  double in_window = 0;
  sliding_most wanted;
};

class fleet_player {
 public:
  fleet_player(const fleet_spec& f, std::uint64_t seed)
      : f_(f), space_(f.racks, f.gpus_per_rack), random_(seed), evictions_(seed ^ 0x73706f74),
        states_(f.services.size()) {
    out_.services.resize(f.services.size());
    out_.samples.resize(f.services.size());
    for (service_state& s : states_) s.next_failure = exponential(random_);
    next_eviction_ = exponential(evictions_);
  }

  fleet_outcome play() {
    const auto ticks = static_cast<std::int64_t>(std::ceil(f_.duration_s / f_.tick_s));
    const std::int64_t stride = std::max<std::int64_t>(1, ticks / static_cast<std::int64_t>(fleet_samples));
    for (std::size_t i = 0; i < states_.size(); ++i) fill(i, first_wanted(i), 0);
    for (std::int64_t k = 0; k < ticks; ++k) {
      const double now = static_cast<double>(k) * f_.tick_s;
      space_.repair(now);
      for (std::size_t i = 0; i < states_.size(); ++i) {
        scale(i, k);
        serve(i, now);
        fail(i, now);
        if (k % stride == 0) sample(i, now);
      }
      reclaim(now);
      load(now, now + f_.tick_s);
    }
    for (std::size_t i = 0; i < states_.size(); ++i)
      for (const replica& r : states_[i].replicas) keep_life(i, r, f_.duration_s, replica_end::stays);
    return std::move(out_);
  }

 private:
  const fleet_service& about(std::size_t i) const { return f_.services[i]; }

  /// Takes a replica out of its service. Its GPUs are not given back yet.
  replica end_replica(std::size_t i, std::size_t which, double now, replica_end how) {
    std::vector<replica>& all = states_[i].replicas;
    const replica gone = all[which];
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(which));
    keep_life(i, gone, now, how);
    return gone;
  }

  void keep_life(std::size_t i, const replica& r, double now, replica_end how) {
    if (!f_.keeps_lives) return;
    if (out_.lives.size() < max_replica_lives)
      out_.lives.push_back({i, r.rack, r.begin_s, std::min(r.ready_s, now), now, how});
    else ++out_.lives_left_out;
  }

  std::int64_t replicas_for(std::size_t i, double requests_per_s) const {
    const autoscaler& a = about(i).scaler;
    const double each = a.target * about(i).curve.sustained(about(i).objective_share);
    return std::clamp(static_cast<std::int64_t>(std::ceil(requests_per_s / each * (1 - 1e-12))), a.min_replicas,
                      a.max_replicas);
  }
  std::int64_t first_wanted(std::size_t i) const {
    const autoscaler& a = about(i).scaler;
    return a.policy == scaling_policy::fixed ? a.max_replicas : replicas_for(i, about(i).load.at(0));
  }

  /// Starts replicas until there are `wanted`. At time 0 they are ready at once.
  void fill(std::size_t i, std::int64_t wanted, double ready_s) {
    auto& all = states_[i].replicas;
    while (static_cast<std::int64_t>(all.size()) < wanted) {
      std::int64_t rack = space_.take(about(i).gpus);
      if (rack < 0 && f_.preempt && make_room(i, ready_s - about(i).start_s)) rack = space_.take(about(i).gpus);
      if (rack < 0) {
        if (ready_s > 0) out_.services[i].unplaced_s += f_.tick_s;
        return;
      }
      const double begin = std::max(0.0, ready_s - about(i).start_s);
      if (const auto& load = about(i).from_store; load && ready_s > 0)
        all.push_back({rack, never, begin + load->before_s, load->bytes, begin});
      else all.push_back({rack, ready_s, 0, 0, begin});
      if (ready_s > 0) ++out_.services[i].starts;
    }
  }

  /// Replicas behind service `i` that may leave a rack, the last service and the last to come first, until it has
  /// room; empty if it cannot have.
  std::vector<std::pair<std::size_t, std::size_t>> victims_in(std::int64_t rack, std::size_t i) const {
    std::vector<std::pair<std::size_t, std::size_t>> out;  // service, replica
    std::int64_t room = space_.free(rack);
    for (std::size_t j = states_.size(); j-- > i + 1;) {
      const auto& all = states_[j].replicas;
      auto left = static_cast<std::int64_t>(all.size());
      for (std::size_t k = all.size(); k-- > 0 && left > about(j).scaler.min_replicas && room < about(i).gpus;)
        if (all[k].rack == rack) out.emplace_back(j, k), --left, room += about(j).gpus;
    }
    if (room < about(i).gpus) out.clear();
    return out;
  }

  /// Evicts the fewest replicas of services behind `i` that make room for one of its. Whether it did.
  bool make_room(std::size_t i, double now) {
    std::vector<std::pair<std::size_t, std::size_t>> best;
    for (std::int64_t rack = 0; rack < space_.racks(); ++rack) {
      auto victims = victims_in(rack, i);
      if (!victims.empty() && (best.empty() || victims.size() < best.size())) best = std::move(victims);
    }
    for (const auto& [j, k] : best) evict(j, k, now);
    return !best.empty();
  }

  /// What a replica had in flight comes again; its router knows at once.
  void evict(std::size_t j, std::size_t which, double now) {
    service_state& s = states_[j];
    service_outcome& o = out_.services[j];
    const replica gone = end_replica(j, which, now, replica_end::evicted);
    space_.give(gone.rack, about(j).gpus);
    ++o.evicted;
    if (gone.ready_s <= now) come_again(s, o, s.in_flight);
  }

  /// Replicas that load share the store; who is done warms up.
  void load(double now, double end) {
    while (now < end) {
      std::vector<std::pair<replica*, const fleet_load*>> loading;
      std::vector<double> most;
      double next = end;
      for (std::size_t i = 0; i < states_.size(); ++i)
        for (replica& r : states_[i].replicas) {
          if (!(r.left > 0)) continue;
          if (r.loads_s > now) next = std::min(next, r.loads_s);
          else loading.emplace_back(&r, &*about(i).from_store), most.push_back(loading.back().second->most);
        }
      const std::vector<double> rates = max_min_shares(most, f_.store_read);
      for (std::size_t k = 0; k < rates.size(); ++k)
        next = std::min(next, now + loading[k].first->left / rates[k]);
      for (std::size_t k = 0; k < rates.size(); ++k) {
        replica& r = *loading[k].first;
        const bool done = now + r.left / rates[k] <= next * (1 + 1e-12);  // what is left is rounding
        r.left = done ? 0 : r.left - rates[k] * (next - now);
        if (done) r.ready_s = next + loading[k].second->after_s;
      }
      now = next;
    }
  }

  static void come_again(service_state& s, service_outcome& o, double requests) {
    const double lost = std::min(requests, o.served);
    s.again += lost;
    o.retried += lost;
    o.served -= lost;
    o.attained -= std::min(o.attained, lost * s.attained);
  }

  /// The load that replicas are wanted for.
  double expected_load(std::size_t i, double now) const {
    const autoscaler& a = about(i).scaler;
    if (a.policy == scaling_policy::scheduled) {
      double most = 0;
      for (double t = now; t <= now + about(i).start_s + f_.tick_s; t += f_.tick_s)
        most = std::max(most, about(i).load.at(t));
      return most;
    }
    const service_state& s = states_[i];
    return s.arrivals.empty() ? about(i).load.at(now)
                              : s.in_window / (static_cast<double>(s.arrivals.size()) * f_.tick_s);
  }

  void scale(std::size_t i, std::int64_t tick) {
    const autoscaler& a = about(i).scaler;
    const double now = static_cast<double>(tick) * f_.tick_s;
    service_state& s = states_[i];
    const std::int64_t need =
        a.policy == scaling_policy::fixed ? a.max_replicas : replicas_for(i, expected_load(i, now));
    s.wanted.add(tick, need, std::max<std::int64_t>(1, std::llround(a.cooldown_s / f_.tick_s)));
    fill(i, need, now + std::max(about(i).start_s, 1e-9));
    for (std::int64_t keep = s.wanted.most(); static_cast<std::int64_t>(s.replicas.size()) > keep;) {
      keep_life(i, s.replicas.back(), now, replica_end::leaves);
      space_.give(s.replicas.back().rack, about(i).gpus);
      s.replicas.pop_back();  // the last to come leaves first
    }
  }

  std::int64_t ready(std::size_t i, double now) const {
    const auto& all = states_[i].replicas;
    return std::count_if(all.begin(), all.end(), [now](const replica& r) { return r.ready_s <= now; });
  }

  /// Moves the requests of one tick.
  void serve(std::size_t i, double now) {
    service_state& s = states_[i];
    service_outcome& o = out_.services[i];
    const fleet_service& about_it = about(i);
    const double tick = f_.tick_s;
    const auto replicas = static_cast<double>(ready(i, now));
    const double fresh = about_it.load.at(now + tick / 2) * tick,
                 can = replicas * about_it.curve.capacity() * tick;
    count_arrivals(s, about_it.scaler, fresh);
    o.requests += fresh;
    const double before = s.waiting, all = before + fresh + s.again;
    const double served = std::min(all, can);
    const double retries = std::min(s.again, served);
    if (fresh + s.again > can) o.short_s += tick;
    s.again = 0;
    s.waiting = all - served;
    const double rate = replicas > 0 ? can / tick : fresh / tick;  // at which the queue moves, or fills
    const double longest = rate * about_it.patience_s;
    if (s.waiting > longest) {
      o.dropped += s.waiting - longest;
      s.waiting = longest;
    }
    const auto gpus = static_cast<double>(about_it.gpus);
    o.ready_gpu_s += replicas * gpus * tick;
    const double starting = static_cast<double>(s.replicas.size()) - replicas;
    o.starting_gpu_s += starting * gpus * tick;
    o.energy_J += starting * about_it.curve.points.front().power_W * tick;
    o.max_ready = std::max(o.max_ready, static_cast<std::int64_t>(replicas));
    if (!(replicas > 0)) return;
    const replica_point at = about_it.curve.at(served / tick / replicas);
    const double wait = (before + s.waiting) / 2 / (can / tick);
    o.served += served;
    o.ttft_s += served * (at.ttft_s + wait);
    o.energy_J += replicas * at.power_W * tick;
    const bool late = wait > 0 && about_it.ttft_limit_s && at.ttft_s + wait > *about_it.ttft_limit_s;
    if (!late) o.attained += (served - retries) * at.attained;
    s.rate = served / tick / replicas;
    s.in_flight = s.rate * at.e2e_s;
    s.e2e = at.e2e_s;
    s.attained = late ? 0 : at.attained;
  }

  void count_arrivals(service_state& s, const autoscaler& a, double fresh) const {
    s.arrivals.push_back(fresh);
    s.in_window += fresh;
    while (static_cast<double>(s.arrivals.size()) * f_.tick_s > std::max(a.window_s, f_.tick_s) * (1 + 1e-9)) {
      s.in_window -= s.arrivals.front();
      s.arrivals.pop_front();
    }
  }

  /// Fails replicas that are in use, by the time that their GPUs ran.
  void fail(std::size_t i, double now) {
    if (!(f_.failures.gpu_mtbf_s > 0)) return;
    service_state& s = states_[i];
    const std::int64_t up = ready(i, now);
    s.hazard += static_cast<double>(up * about(i).gpus) * f_.tick_s / f_.failures.gpu_mtbf_s;
    while (s.hazard >= s.next_failure && !s.replicas.empty() && up > 0) {
      s.next_failure += exponential(random_);
      const auto which = static_cast<std::size_t>(random_() % s.replicas.size());
      lose(i, which, now);
    }
  }

  void lose(std::size_t i, std::size_t which, double now) {
    service_state& s = states_[i];
    service_outcome& o = out_.services[i];
    const replica gone = end_replica(i, which, now, replica_end::fails);
    const std::int64_t broken = std::min(about(i).gpus, f_.failures.machine_gpus);
    space_.give(gone.rack, about(i).gpus - broken);
    space_.break_until(now + f_.failures.repair_s, gone.rack, broken);
    out_.failed_gpu_s +=
        static_cast<double>(broken) * std::min(f_.failures.repair_s, std::max(0.0, f_.duration_s - now));
    ++o.failures;
    if (gone.ready_s > now) return;  // it served nobody yet
    // What it had, and what is sent to it until somebody notices, comes again.
    come_again(s, o, s.in_flight + s.rate * f_.failures.detection_s);
  }

  std::int64_t machines(std::size_t i) const {
    return (about(i).gpus + f_.evictions.machine_gpus - 1) / f_.evictions.machine_gpus;
  }

  std::int64_t machines_in_use() const {
    std::int64_t out = 0;
    for (std::size_t i = 0; i < states_.size(); ++i)
      out += static_cast<std::int64_t>(states_[i].replicas.size()) * machines(i);
    return out;
  }

  /// Takes back machines, or racks, that are in use.
  void reclaim(double now) {
    const fleet_evictions& e = f_.evictions;
    if (!(e.after_s > 0)) return;
    hazard_ += static_cast<double>(e.takes_rack ? f_.racks : machines_in_use()) * f_.tick_s / e.after_s;
    while (hazard_ >= next_eviction_) {
      if (machines_in_use() == 0) {  // nothing is left to take
        next_eviction_ = hazard_ + exponential(evictions_);
        return;
      }
      next_eviction_ += exponential(evictions_);
      if (e.takes_rack)
        reclaim_rack(static_cast<std::int64_t>(evictions_() % static_cast<std::uint64_t>(f_.racks)), now);
      else reclaim_machine(now);
    }
  }

  void reclaim_rack(std::int64_t rack, double now) {
    for (std::size_t i = 0; i < states_.size(); ++i)
      for (std::size_t k = states_[i].replicas.size(); k-- > 0;)
        if (states_[i].replicas[k].rack == rack) take_back(i, k, now);
    const std::int64_t gpus = space_.free(rack);
    space_.give(rack, -gpus);
    count_gone(rack, gpus, now);
  }

  void reclaim_machine(double now) {
    auto which = static_cast<std::int64_t>(evictions_() % static_cast<std::uint64_t>(machines_in_use()));
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const auto here = static_cast<std::int64_t>(states_[i].replicas.size()) * machines(i);
      if (which >= here) {
        which -= here;
        continue;
      }
      const auto k = static_cast<std::size_t>(which / machines(i));
      const std::int64_t rack = states_[i].replicas[k].rack,
                         gone = std::min(about(i).gpus, f_.evictions.machine_gpus);
      take_back(i, k, now);
      space_.give(rack, -gone);
      count_gone(rack, gone, now);
      return;
    }
  }

  void count_gone(std::int64_t rack, std::int64_t gpus, double now) {
    const double back = f_.evictions.back_s;
    space_.break_until(now + back, rack, gpus);
    out_.reclaimed_gpu_s += static_cast<double>(gpus) * std::min(back, std::max(0.0, f_.duration_s - now));
  }

  /// A replica ends; requests in flight that would end after the notice come again.
  void take_back(std::size_t i, std::size_t which, double now) {
    service_state& s = states_[i];
    service_outcome& o = out_.services[i];
    const replica gone = end_replica(i, which, now, replica_end::reclaimed);
    space_.give(gone.rack, about(i).gpus);
    ++o.reclaimed;
    if (gone.ready_s > now || !(s.e2e > 0)) return;
    come_again(s, o, s.in_flight * std::max(0.0, 1 - f_.evictions.notice_s / s.e2e));
  }

  void sample(std::size_t i, double now) {
    const service_state& s = states_[i];
    const std::int64_t up = ready(i, now);
    out_.samples[i].push_back(
        {now, about(i).load.at(now), s.waiting, up, static_cast<std::int64_t>(s.replicas.size()) - up});
  }

  const fleet_spec& f_;
  rack_space space_;
  std::mt19937_64 random_, evictions_;
  double hazard_ = 0, next_eviction_ = 0;  ///< of all machines, or racks, together
  std::vector<service_state> states_;
  fleet_outcome out_;
};

}  // namespace

fleet_outcome play_fleet(const fleet_spec& f, std::uint64_t seed) {
  fleet_outcome out = fleet_player(f, seed).play();
  for (service_outcome& o : out.services) {
    const double tries = o.served + o.retried;
    o.ttft_s = tries > 0 ? o.ttft_s / tries : 0;
  }
  return out;
}

}  // namespace nvlsim
