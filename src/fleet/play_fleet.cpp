#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "nvlsim/fleet/fleet.hpp"
#include "nvlsim/units/max_min.hpp"
#include "nvlsim/units/random.hpp"

namespace nvlsim {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// GPUs of a machine.
struct machine_share {
  std::size_t machine = 0;
  std::int64_t gpus = 0;
};

struct replica {
  std::int64_t rack = 0;
  double ready_s = 0;  ///< `never` while it loads
  double loads_s = 0;  ///< from when on
  double left = 0;     ///< bytes to load
  double begin_s = 0;
  std::vector<machine_share> on = {};
  double noticed_s = never;  ///< when its failure is noticed; until then its service counts on it

  bool failed() const { return noticed_s < never; }
  bool serves(double now_s) const { return ready_s <= now_s && !failed(); }
};

/// Which GPUs of the machines of racks are free. A machine that is gone comes back, and lends nothing until then.
class rack_space {
 public:
  rack_space(std::int64_t racks, std::int64_t each, std::int64_t machine_gpus)
      : free_(static_cast<std::size_t>(racks), each) {
    for (std::int64_t r = 0; r < racks; ++r) {
      first_.push_back(machines_.size());
      for (std::int64_t left = each; left > 0; left -= machine_gpus)
        machines_.push_back({r, std::min(left, machine_gpus), std::min(left, machine_gpus)});
    }
    first_.push_back(machines_.size());
  }

  /// A rack for `gpus`: of those that hold them, the fullest. -1: none.
  std::int64_t rack_for(std::int64_t gpus) const {
    std::int64_t best = -1;
    for (std::size_t r = 0; r < free_.size(); ++r)
      if (free_[r] >= gpus && (best < 0 || free_[r] < free_[static_cast<std::size_t>(best)]))
        best = static_cast<std::int64_t>(r);
    return best;
  }
  /// GPUs of a rack that has them: on the fullest machine that holds them, else whole free machines first.
  std::vector<machine_share> take(std::int64_t rack, std::int64_t gpus) {
    std::vector<machine_share> out;
    while (gpus > 0) {
      const std::size_t m = machine_for(static_cast<std::size_t>(rack), gpus);
      const std::int64_t some = std::min(gpus, machines_[m].free);
      lend(m, some);
      out.push_back({m, some});
      gpus -= some;
    }
    return out;
  }
  void give(const std::vector<machine_share>& back) {
    for (const machine_share& s : back) lend(s.machine, -s.gpus);
  }
  std::int64_t racks() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t free(std::int64_t rack) const { return free_[static_cast<std::size_t>(rack)]; }
  std::size_t machines() const { return machines_.size(); }
  std::int64_t gpus_of(std::size_t m) const { return machines_[m].gpus; }
  bool is_there(std::size_t m) const { return !machines_[m].gone; }
  bool in_use(std::size_t m) const { return is_there(m) && machines_[m].free < machines_[m].gpus; }
  std::int64_t machines_in_use() const { return in_use_; }
  std::size_t first_of(std::int64_t rack) const { return first_[static_cast<std::size_t>(rack)]; }

  void lose(std::size_t m, double until_s, bool broken) {
    in_use_ -= in_use(m);
    free_[static_cast<std::size_t>(machines_[m].rack)] -= machines_[m].free;
    machines_[m].gone = true;
    machines_[m].broken = broken;
    machines_[m].until_s = until_s;
    gone_.push({until_s, m});
  }
  /// A broken machine that its seller takes meanwhile is back when the seller gives it back, if that is later.
  /// Returns the GPU time up to `end_s` that it is gone for longer.
  double take_broken(std::size_t m, double until_s, double end_s) {
    machine& it = machines_[m];
    if (!it.broken || until_s <= it.until_s) return 0;
    const double longer = std::max(0.0, std::min(until_s, end_s) - it.until_s);
    it.until_s = until_s;
    it.broken = false;
    gone_.push({until_s, m});
    return longer * static_cast<double>(it.gpus);
  }
  void bring_back(double now_s) {
    for (; !gone_.empty() && gone_.top().until_s <= now_s; gone_.pop()) {
      const std::size_t m = gone_.top().machine;
      if (machines_[m].until_s > now_s || is_there(m)) continue;  // it stays away for longer, or came back
      machines_[m].gone = false;
      free_[static_cast<std::size_t>(machines_[m].rack)] += machines_[m].free;
      in_use_ += in_use(m);
    }
  }

 private:
  struct machine {
    std::int64_t rack = 0, gpus = 0, free = 0;
    bool gone = false, broken = false;
    double until_s = 0;  ///< while it is gone
  };
  struct absence {
    double until_s;
    std::size_t machine;
    friend bool operator>(const absence& a, const absence& b) {
      return std::tie(a.until_s, a.machine) > std::tie(b.until_s, b.machine);
    }
  };

  std::size_t machine_for(std::size_t rack, std::int64_t gpus) const {
    std::size_t best = first_[rack];
    const auto fits = [&](std::size_t m) { return lends(m) >= gpus; };
    for (std::size_t m = first_[rack] + 1; m < first_[rack + 1]; ++m) {
      const bool fuller = lends(m) < lends(best);
      if (fits(m) ? !fits(best) || fuller : !fits(best) && lends(best) < lends(m)) best = m;
    }
    return best;
  }
  std::int64_t lends(std::size_t m) const { return machines_[m].gone ? 0 : machines_[m].free; }

  void lend(std::size_t m, std::int64_t gpus) {
    in_use_ -= in_use(m);
    machines_[m].free -= gpus;
    if (is_there(m)) free_[static_cast<std::size_t>(machines_[m].rack)] -= gpus;
    in_use_ += in_use(m);
  }

  std::vector<std::int64_t> free_;  ///< by rack
  std::vector<machine> machines_;   ///< rack by rack
  std::vector<std::size_t> first_;  ///< machine of each rack, and their number
  std::int64_t in_use_ = 0;
  std::priority_queue<absence, std::vector<absence>, std::greater<>> gone_;
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
  double in_flight = 0, attained = 0, e2e = 0;  ///< of a replica in the last tick
  double first_tokens = 0;                      ///< requests whose time to the first token is summed
  std::deque<double> arrivals;                  ///< of the ticks in the window
  double in_window = 0;
  sliding_most wanted;
};

class fleet_player {
 public:
  fleet_player(const fleet_spec& f, std::uint64_t seed)
      : f_(f), space_(f.racks, f.gpus_per_rack, f.machine_gpus), random_(seed), evictions_(seed ^ 0x73706f74),
        states_(f.services.size()) {
    out_.services.resize(f.services.size());
    out_.samples.resize(f.services.size());
    for (service_state& s : states_) s.next_failure = exponential(random_);
    next_eviction_ = exponential(evictions_);
  }

  fleet_outcome play() {
    const auto ticks = static_cast<std::int64_t>(std::ceil(f_.duration_s / f_.tick_s * (1 - 1e-12)));
    const std::int64_t stride = std::max<std::int64_t>(1, ticks / static_cast<std::int64_t>(fleet_samples));
    for (std::size_t i = 0; i < states_.size(); ++i) fill(i, first_wanted(i), 0);
    for (std::int64_t k = 0; k < ticks; ++k) {
      const double now = static_cast<double>(k) * f_.tick_s;
      tick_ = std::min(f_.tick_s, f_.duration_s - now);
      space_.bring_back(now);
      for (std::size_t i = 0; i < states_.size(); ++i) {
        scale(i, k);
        serve(i, now);
        if (k % stride == 0) sample(i, now);
      }
      for (std::size_t i = 0; i < states_.size(); ++i) fail(i, now);
      notice(now + tick_);
      reclaim(now);
      load(now, now + tick_);
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      for (const replica& r : states_[i].replicas) keep_life(i, r, f_.duration_s, replica_end::stays);
      double& ttft = out_.services[i].ttft_s;
      ttft = states_[i].first_tokens > 0 ? ttft / states_[i].first_tokens : 0;
    }
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
      std::int64_t rack = space_.rack_for(about(i).gpus);
      if (rack < 0 && f_.preempt && make_room(i, ready_s - about(i).start_s))
        rack = space_.rack_for(about(i).gpus);
      if (rack < 0) {
        if (ready_s > 0) out_.services[i].unplaced_s += tick_;
        return;
      }
      const double begin = std::max(0.0, ready_s - about(i).start_s);
      if (const auto& load = about(i).from_store; load && ready_s > 0)
        all.push_back({rack, never, begin + load->before_s, load->bytes, begin});
      else all.push_back({rack, ready_s, 0, 0, begin});
      all.back().on = space_.take(rack, about(i).gpus);
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
        if (all[k].rack == rack && !all[k].failed()) out.emplace_back(j, k), --left, room += about(j).gpus;
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
    space_.give(gone.on);
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
      space_.give(s.replicas.back().on);
      s.replicas.pop_back();  // the last to come leaves first
    }
  }

  std::int64_t ready(std::size_t i, double now) const {
    const auto& all = states_[i].replicas;
    return std::count_if(all.begin(), all.end(), [now](const replica& r) { return r.serves(now); });
  }

  /// Replicas that get requests from `now` to the end of the tick although they have failed: each counts for the
  /// part of the tick until its failure is noticed.
  double unnoticed(std::size_t i, double now) const {
    double out = 0;
    for (const replica& r : states_[i].replicas)
      if (r.failed() && r.ready_s <= now) out += std::clamp((r.noticed_s - now) / tick_, 0.0, 1.0);
    return out;
  }

  /// Moves the requests of one tick. Those that go to a failed replica come again in the next.
  void serve(std::size_t i, double now) {
    service_state& s = states_[i];
    service_outcome& o = out_.services[i];
    const fleet_service& about_it = about(i);
    const auto live = static_cast<double>(ready(i, now)), failed = unnoticed(i, now), replicas = live + failed;
    const double fresh = about_it.load.at(now + tick_ / 2) * tick_,
                 can = replicas * about_it.curve.capacity() * tick_;
    count_arrivals(s, about_it.scaler, fresh);
    o.requests += fresh;
    const double before = s.waiting, all = before + fresh + s.again;
    const double sent = std::min(all, can), lost = replicas > 0 ? sent * failed / replicas : 0,
                 served = sent - lost;
    const double retries = std::min(s.again, served);
    if (fresh + s.again > live * about_it.curve.capacity() * tick_) o.short_s += tick_;
    s.again = lost;
    o.retried += lost;
    s.waiting = all - sent;
    const double rate = live > 0 ? can / tick_ : fresh / tick_;  // at which the queue moves, or fills
    const double longest = rate * about_it.patience_s;
    if (s.waiting > longest) {
      o.dropped += s.waiting - longest;
      s.waiting = longest;
    }
    pay(i, now, live);
    o.max_ready = std::max(o.max_ready, static_cast<std::int64_t>(live));
    if (!(live > 0)) return;
    const replica_point at = about_it.curve.at(sent / tick_ / replicas);
    const double wait = (before + s.waiting) / 2 / (can / tick_);
    o.served += served;
    o.ttft_s += served * (at.ttft_s + wait);
    s.first_tokens += served;
    use_energy(o, now, live * at.power_W);
    const bool late = wait > 0 && about_it.ttft_limit_s && at.ttft_s + wait > *about_it.ttft_limit_s;
    if (!late) o.attained += (served - retries) * at.attained;
    s.in_flight = sent / tick_ / replicas * at.e2e_s;
    s.e2e = at.e2e_s;
    s.attained = late ? 0 : at.attained;
  }

  /// GPUs of all replicas, and the power of those that serve nobody: failed ones and those that start.
  void pay(std::size_t i, double now, double live) {
    const service_state& s = states_[i];
    service_outcome& o = out_.services[i];
    const auto here = static_cast<double>(
        std::count_if(s.replicas.begin(), s.replicas.end(), [now](const replica& r) { return r.ready_s <= now; }));
    const double gpus = static_cast<double>(about(i).gpus) * tick_, all = static_cast<double>(s.replicas.size());
    o.ready_gpu_s += here * gpus;
    o.starting_gpu_s += (all - here) * gpus;
    use_energy(o, now, (all - live) * about(i).curve.points.front().power_W);
  }

  void use_energy(service_outcome& o, double now, double power_W) {
    o.energy_J += power_W * tick_;
    for (double at = now, end = now + tick_; at < end;) {
      const double hour = std::floor(at / 3600), next = std::min(end, (hour + 1) * 3600);
      out_.energy_by_hour_J[static_cast<std::size_t>(std::fmod(hour, 24))] += power_W * (next - at);
      at = next;
    }
  }

  void count_arrivals(service_state& s, const autoscaler& a, double fresh) const {
    s.arrivals.push_back(fresh);
    s.in_window += fresh;
    while (static_cast<double>(s.arrivals.size()) * f_.tick_s > std::max(a.window_s, f_.tick_s) * (1 + 1e-9)) {
      s.in_window -= s.arrivals.front();
      s.arrivals.pop_front();
    }
  }

  /// GPUs that serve fail, by the time that they ran; each takes its machine down.
  void fail(std::size_t i, double now) {
    if (!(f_.failures.gpu_mtbf_s > 0)) return;
    service_state& s = states_[i];
    s.hazard += static_cast<double>(ready(i, now) * about(i).gpus) * tick_ / f_.failures.gpu_mtbf_s;
    while (s.hazard >= s.next_failure && ready(i, now) > 0) {
      s.next_failure += exponential(random_);
      std::size_t which = 0;
      do which = static_cast<std::size_t>(random_() % s.replicas.size());
      while (!s.replicas[which].serves(now));
      auto gpu = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(about(i).gpus));
      std::size_t part = 0;
      for (; gpu >= s.replicas[which].on[part].gpus; ++part) gpu -= s.replicas[which].on[part].gpus;
      lose_machine(s.replicas[which].on[part].machine, now);
    }
  }

  static bool is_on(const replica& r, std::size_t machine) {
    return std::any_of(r.on.begin(), r.on.end(),
                       [machine](const machine_share& s) { return s.machine == machine; });
  }

  /// What its replicas have in flight comes again; what is sent to them is lost until somebody notices.
  void lose_machine(std::size_t m, double now) {
    const double noticed = now + tick_ + f_.failures.detection_s, back = noticed + f_.failures.repair_s;
    space_.lose(m, back, true);
    out_.failed_gpu_s +=
        static_cast<double>(space_.gpus_of(m)) * std::max(0.0, std::min(back, f_.duration_s) - now);
    ++out_.failed_machines;
    for (std::size_t i = 0; i < states_.size(); ++i)
      for (replica& r : states_[i].replicas) {
        if (r.failed() || !is_on(r, m)) continue;
        if (r.serves(now)) come_again(states_[i], out_.services[i], states_[i].in_flight);
        else r.ready_s = never, r.left = 0;  // it never served
        r.noticed_s = noticed;
        ++out_.services[i].failures;
      }
  }

  /// Failed replicas leave when they are noticed, and the policy may start others.
  void notice(double now) {
    for (std::size_t i = 0; i < states_.size(); ++i)
      for (std::size_t k = states_[i].replicas.size(); k-- > 0;) {
        if (states_[i].replicas[k].noticed_s > now) continue;
        space_.give(end_replica(i, k, now, replica_end::fails).on);
      }
  }

  /// Takes back machines, or racks, that are in use.
  void reclaim(double now) {
    const fleet_evictions& e = f_.evictions;
    if (!(e.after_s > 0)) return;
    hazard_ += static_cast<double>(e.takes_rack ? f_.racks : space_.machines_in_use()) * tick_ / e.after_s;
    while (hazard_ >= next_eviction_) {
      if (space_.machines_in_use() == 0) {  // nothing is left to take
        next_eviction_ = hazard_ + exponential(evictions_);
        return;
      }
      next_eviction_ += exponential(evictions_);
      if (e.takes_rack) {
        const auto rack = static_cast<std::int64_t>(evictions_() % static_cast<std::uint64_t>(f_.racks));
        for (std::size_t m = space_.first_of(rack); m < space_.first_of(rack + 1); ++m) {
          if (space_.is_there(m)) take_back(m, now);
          else out_.reclaimed_gpu_s += space_.take_broken(m, now + e.back_s, f_.duration_s);
        }
      } else {
        std::size_t m = 0;
        do m = static_cast<std::size_t>(evictions_() % space_.machines());
        while (!space_.in_use(m));
        take_back(m, now);
      }
    }
  }

  /// Replicas of the machine end; requests in flight that would end after the notice come again.
  void take_back(std::size_t m, double now) {
    for (std::size_t i = 0; i < states_.size(); ++i)
      for (std::size_t k = states_[i].replicas.size(); k-- > 0;) {
        if (!is_on(states_[i].replicas[k], m)) continue;
        service_state& s = states_[i];
        const replica gone = end_replica(i, k, now, replica_end::reclaimed);
        space_.give(gone.on);
        ++out_.services[i].reclaimed;
        if (gone.serves(now) && s.e2e > 0)
          come_again(s, out_.services[i], s.in_flight * std::max(0.0, 1 - f_.evictions.notice_s / s.e2e));
      }
    const double back = f_.evictions.back_s;
    space_.lose(m, now + back, false);
    out_.reclaimed_gpu_s +=
        static_cast<double>(space_.gpus_of(m)) * std::min(back, std::max(0.0, f_.duration_s - now));
  }

  void sample(std::size_t i, double now) {
    const auto& all = states_[i].replicas;
    const auto starting =
        std::count_if(all.begin(), all.end(), [now](const replica& r) { return r.ready_s > now && !r.failed(); });
    out_.samples[i].push_back({now, about(i).load.at(now), states_[i].waiting, ready(i, now), starting});
  }

  const fleet_spec& f_;
  rack_space space_;
  std::mt19937_64 random_, evictions_;
  double hazard_ = 0, next_eviction_ = 0;  ///< of all machines, or racks, together
  double tick_ = 0;                        ///< length of this tick: the last may be shorter
  std::vector<service_state> states_;
  fleet_outcome out_;
};

}  // namespace

fleet_outcome play_fleet(const fleet_spec& f, std::uint64_t seed) { return fleet_player(f, seed).play(); }

}  // namespace nvlsim
