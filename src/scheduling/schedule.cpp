#include "nvlsim/scheduling/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <random>
#include <tuple>

#include "nvlsim/scheduling/cluster_world.hpp"
#include "nvlsim/units/random.hpp"
#include "scheduling/cluster_state.hpp"
#include "scheduling/planner.hpp"
#include "scheduling/priorities.hpp"

namespace nvlsim {
namespace {

/// Kinds of events, in the order in which those of one time happen.
enum class event_kind {
  job_end,
  repair,
  window_end,
  failure,
  rack_failure,
  window_begin,
  submit,
  reorder,
  fill,
  look
};

struct event {
  double at = 0;
  event_kind kind = event_kind::look;
  int id = 0;        ///< job, node, rack or window
  int attempt = -1;  ///< that ends

  auto key() const { return std::tuple(at, kind, id, attempt); }
  bool operator>(const event& other) const { return key() > other.key(); }
};

class cluster_queue_run final : public queue_control {
 public:
  cluster_queue_run(const job_list& jobs, const queue_setting& set, cluster_world* world)
      : jobs_(jobs.jobs), set_(set), world_(world), state_(set.cluster), order_(jobs, set),
        remaining_(jobs_.size()), failures_(set.seed) {
    running_.attempt_of.assign(jobs_.size(), -1);
    rules_.reserve(jobs.queues.size());
    for (const std::string& name : jobs.queues) rules_.push_back(rules_of(name, set.policy));
    held_by_queue_.resize(std::max<std::size_t>(rules_.size(), 1));
    rules_.resize(held_by_queue_.size());
    demands_.reserve(jobs_.size());
    for (const batch_job& j : jobs_) demands_.push_back(demand_of(j, set.cluster, set.placement));
  }

  queue_schedule run() {
    begin();
    const double stop = set_.duration.base() > 0 ? set_.duration.base() : never;
    while (stop < never || left_ > 0) {
      const double own = events_.empty() ? never : events_.top().at, others = world_ ? world_->next() : never;
      if (std::min(own, others) > stop || std::min(own, others) == never) break;
      advance(std::min(own, others));
      if (others <= own) {
        world_->happen(*this);
        requeue_evicted();
        ask_for_look();
        continue;
      }
      const event e = events_.top();
      events_.pop();
      handle(e);
    }
    if (stop < never) advance(stop);
    finish();
    return std::move(out_);
  }

  void take_down(int node) override { lose(node, attempt_end::node_failed); }
  void bring_up(int node) override { state_.bring_up(node); }
  void finish(int job) override { leave(job, attempt_end::finished); }
  void move(int job, const std::vector<int>& lost, const std::vector<int>& gained) override {
    const int attempt = running_.attempt_of[index(job)];
    std::vector<int>& nodes = out_.attempts[index(attempt)].nodes;
    const job_demand& d = demands_[index(job)];
    state_.release(job, d.gpus_each, lost);
    state_.hold(job, d.gpus_each, gained);
    for (const int n : lost) nodes.erase(std::lower_bound(nodes.begin(), nodes.end(), n));
    for (const int n : gained) nodes.insert(std::lower_bound(nodes.begin(), nodes.end(), n), n);
    out_.moves.push_back({attempt, now_, lost, gained});
  }
  bool clear_for(int job, int node) override {
    const std::vector<int> holders(state_.jobs_on(node).begin(), state_.jobs_on(node).end());
    const auto gives_way = [&](int other) { return other != job && is_weaker(other, job); };
    if (!set_.policy.preempt || holders.empty() || !std::all_of(holders.begin(), holders.end(), gives_way))
      return false;
    for (const int other : holders) ++out_.preemptions, leave(other, attempt_end::preempted);
    return true;
  }

 private:
  static queue_rules rules_of(const std::string& name, const scheduling_policy& p) {
    for (const queue_rules& q : p.queues)
      if (q.name == name) return q;
    return {};
  }

  const queue_rules& rules(int job) const { return rules_[static_cast<std::size_t>(jobs_[index(job)].queue)]; }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  /// How long a job may stay.
  double limit(int job) const {
    const double asked = jobs_[index(job)].limit.base(), most = rules(job).max_run.base();
    const double limit = asked > 0 ? asked : never;
    return most > 0 ? std::min(limit, most) : limit;
  }

  void add(double at, event_kind kind, int id, int attempt = -1) { events_.push({at, kind, id, attempt}); }

  void begin() {
    std::map<std::tuple<int, int, int>, bool> possible;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const job_demand& d = demands_[j];
      const auto [known, added] = possible.try_emplace({d.nodes, d.gpus_each, d.segment}, false);
      if (added) known->second = can_ever_run(set_.cluster, set_.placement.kind, d);
      remaining_[j] = jobs_[j].run.base();
      if (!known->second) ++out_.never;
      else ++left_, add(jobs_[j].submit.base(), event_kind::submit, static_cast<int>(j));
    }
    for (std::size_t w = 0; w < set_.maintenance.size(); ++w) {
      const maintenance_window& window = set_.maintenance[w];
      add(window.start.base(), event_kind::window_begin, static_cast<int>(w));
      add((window.start + window.length).base(), event_kind::window_end, static_cast<int>(w));
    }
    next_failure(event_kind::failure);
    next_failure(event_kind::rack_failure);
  }

  void handle(const event& e) {
    switch (e.kind) {
      case event_kind::job_end:
        if (running_.attempt_of[index(e.id)] != e.attempt || !is_running(e.id)) return;
        leave(e.id, remaining_[index(e.id)] > limit(e.id) ? attempt_end::time_limit : attempt_end::finished);
        break;
      case event_kind::repair:
        state_.bring_up(e.id);
        break;
      case event_kind::failure:
      case event_kind::rack_failure:
        next_failure(e.kind);
        fail(e);
        break;
      case event_kind::window_begin:
        begin_window(e.id);
        break;
      case event_kind::window_end:
        for_nodes(set_.maintenance[index(e.id)], [this](int n) { state_.bring_up(n); });
        break;
      case event_kind::submit:
        submit(e.id);
        return;
      case event_kind::reorder:
        reorder_at_ = never;
        break;
      case event_kind::fill:
      case event_kind::look:
        look(e.kind == event_kind::fill);
        return;
    }
    ask_for_look();
  }

  /// Jobs that wait are looked at in order at the next multiple of `interval`, or at once; to plan, when the
  /// scheduler next plans.
  void ask_for_look(double interval = 0) {
    if (waiting_.empty()) return;
    const auto at_next = [this](double every, event_kind kind, double& asked) {
      const double at = std::max(every > 0 ? std::ceil(now_ / every) * every : now_, now_);
      if (asked >= now_ && asked <= at) return;
      asked = at;
      add(at, kind, 0);
    };
    at_next(interval, event_kind::look, look_at_);
    if (set_.policy.backfill != backfill_kind::none)
      at_next(set_.policy.backfill_interval.base(), event_kind::fill, fill_at_);
    if (set_.policy.priority.by_factors() && reorder_at_ == never) {
      reorder_at_ = now_ + set_.policy.priority.period.base();
      add(reorder_at_, event_kind::reorder, 0);
    }
  }

  void submit(int job) {
    order_.insert(waiting_, job, now_);
    ask_for_look(set_.policy.interval.base());
  }

  void look(bool fill) {
    double& asked = fill ? fill_at_ : look_at_;
    if (asked != now_) return;  // another look has done it
    asked = never;
    if (fill && look_at_ == now_) look_at_ = never;
    look_at_jobs(fill);
  }

  using job_form = std::tuple<int, int, int>;  ///< nodes, GPUs of each, segment

  /// One look at the queue.
  struct look_notes {
    planner plan;
    bool fill = false;
    bool behind = false;                      ///< a job ahead waits
    std::map<job_form, double> refused = {};  ///< the shortest limit that could not start now
  };

  /// When and where a job starts. `promise`: if not now, it is planned.
  planned_start find_start(int job, bool promise, look_notes& look) {
    const job_demand& d = demands_[index(job)];
    if (promise) return look.plan.earliest(d, limit(job), running_, out_.attempts);
    const job_form form{d.nodes, d.gpus_each, d.segment};
    planned_start start{now_, {}};
    const auto [known, added] = look.refused.try_emplace(form, never);
    if (added || limit(job) < known->second) start.nodes = look.plan.now(d, limit(job));
    if (start.nodes.empty()) known->second = std::min(known->second, limit(job));
    return start;
  }

  /// Starts a job, or promises it nodes. False: the look is over.
  bool look_at(int job, bool others, look_notes& look) {
    const bool all = set_.policy.backfill == backfill_kind::conservative;
    const bool promise = look.fill && others && (all || !look.behind);
    planned_start start = find_start(job, promise, look);
    const bool now = !start.nodes.empty() && start.at <= now_;
    if (now) enter(job, std::move(start.nodes));
    if (now || (set_.policy.preempt && preempt_for(job))) return look.plan.forget_room(), true;
    look.behind = true;
    if (promise && !start.nodes.empty())
      look.plan.promise(std::move(start), limit(job), demands_[index(job)].gpus_each);
    return look.fill;
  }

  /// Starts what can start. `fill`: also jobs behind others that wait.
  void look_at_jobs(bool fill) {
    ++out_.passes;
    const std::size_t depth = std::min(waiting_.size(), index(set_.policy.depth));
    if (depth == 0) return;
    if (set_.policy.priority.by_factors()) order_.sort(waiting_, now_);
    const time_grid grid{set_.policy.backfill_resolution.base(), set_.policy.clock_offset.base()};
    look_notes look{{state_, set_.placement.kind, grid, now_}, fill};
    for (const maintenance_window& w : set_.maintenance) reserve_window(look.plan, w);
    std::size_t end = depth;  // no job from here on has room
    for (std::size_t i = 0; i < end; ++i) {
      while (!set_.policy.preempt && end > i && !state_.has_room(demands_[index(waiting_[end - 1])])) --end;
      if (end <= i) break;
      if (!over_quota(waiting_[i]) && !look_at(waiting_[i], i + 1 < end, look)) break;
    }
    const auto looked_at = waiting_.begin() + static_cast<std::ptrdiff_t>(depth);
    waiting_.erase(std::remove_if(waiting_.begin(), looked_at, [this](int j) { return is_running(j); }),
                   looked_at);
    requeue_evicted();
  }

  bool is_running(int job) const {
    const int a = running_.attempt_of[index(job)];
    return a >= 0 && out_.attempts[index(a)].how == attempt_end::still_running;
  }

  bool over_quota(int job) const {
    const std::int64_t most = rules(job).max_gpus;
    return most > 0 && held_by_queue_[index(jobs_[index(job)].queue)] + demands_[index(job)].gpus() > most;
  }

  void enter(int job, std::vector<int> nodes) {
    const job_demand& d = demands_[index(job)];
    const int attempt = static_cast<int>(out_.attempts.size());
    held_by_queue_[index(jobs_[index(job)].queue)] += d.gpus();
    order_.hold(job, d.gpus(), now_);
    if (!is_steered(job))
      add(now_ + std::min(remaining_[index(job)], limit(job)), event_kind::job_end, job, attempt);
    running_.attempt_of[index(job)] = static_cast<int>(out_.attempts.size());
    state_.hold(job, d.gpus_each, nodes);
    out_.attempts.push_back({job, now_, now_, attempt_end::still_running, d.gpus_each, std::move(nodes)});
    running_.by_limit.insert({now_ + limit(job), job});
    if (world_) world_->hold(job, now_, out_.attempts.back().nodes);
  }

  bool is_steered(int job) const { return world_ && world_->steers(job); }

  void leave(int job, attempt_end how) {
    const job_demand& d = demands_[index(job)];
    job_attempt& a = out_.attempts[index(running_.attempt_of[index(job)])];
    a.how = how;
    a.end_s = now_;
    state_.release(job, d.gpus_each, a.nodes);
    running_.by_limit.erase({a.start_s + limit(job), job});
    held_by_queue_[index(jobs_[index(job)].queue)] -= d.gpus();
    order_.hold(job, -d.gpus(), now_);
    if (world_) world_->release(job, now_, a.nodes, how);
    account(job, a);
  }

  void account(int job, const job_attempt& a) {
    const double stay = a.end_s - a.start_s, asked = jobs_[index(job)].gpus;
    out_.time.surplus += stay * (static_cast<double>(demands_[index(job)].gpus()) - asked);
    const bool done = a.how == attempt_end::finished || a.how == attempt_end::time_limit;
    if (is_steered(job)) {  // the world knows what its time went to
      if (done) --left_;
      else if (a.how != attempt_end::still_running) ++out_.requeues, evicted_.push_back(job);
      return;
    }
    if (done || a.how == attempt_end::still_running) {
      out_.time.useful += stay * asked;
      left_ -= done;
      return;
    }
    const double every = set_.policy.checkpoint_interval.base();
    const bool again = set_.policy.requeue || a.how == attempt_end::preempted;
    const double kept = again && every > 0 ? std::floor(stay / every) * every : 0;
    out_.time.useful += kept * asked;
    out_.time.redone += (stay - kept) * asked;
    remaining_[index(job)] -= kept;
    if (again) ++out_.requeues, evicted_.push_back(job);
    else --left_;
  }

  /// Whether a running job gives way to another.
  bool is_weaker(int other, int job) const {
    const double since = out_.attempts[index(running_.attempt_of[index(other)])].start_s;
    return rules(other).preemptible && rules(other).tier < rules(job).tier &&
           now_ - since >= set_.policy.preempt_after.base();
  }

  /// Evicts jobs of lower tiers, the youngest of the lowest first, if that makes room.
  bool preempt_for(int job) {
    std::vector<std::tuple<int, double, int>> victims;
    for (const auto& [at, other] : running_.by_limit) {
      const double since = out_.attempts[index(running_.attempt_of[index(other)])].start_s;
      if (is_weaker(other, job)) victims.emplace_back(rules(other).tier, -since, other);
    }
    std::sort(victims.begin(), victims.end());
    std::vector<std::int16_t> room(state_.free().begin(), state_.free().end());
    for (const maintenance_window& w : set_.maintenance)
      if (w.start.base() < now_ + limit(job) && (w.start + w.length).base() > now_)
        for_nodes(w, [&room](int n) { room[index(n)] = 0; });
    const job_demand& d = demands_[index(job)];
    std::int64_t freed = state_.idle_gpus();
    for (std::size_t v = 0; v < victims.size(); ++v) {
      const job_attempt& a = out_.attempts[index(running_.attempt_of[index(std::get<2>(victims[v]))])];
      for (const int n : a.nodes)
        if (!state_.down(n)) room[index(n)] = static_cast<std::int16_t>(room[index(n)] + a.gpus_each);
      freed += a.gpus_each * static_cast<std::int64_t>(a.nodes.size());
      if (freed < d.gpus()) continue;
      std::vector<int> nodes = place_job(set_.cluster, set_.placement.kind, d, room);
      if (nodes.empty()) continue;
      for (std::size_t w = 0; w <= v; ++w) evict_if_on(std::get<2>(victims[w]), nodes);
      enter(job, std::move(nodes));
      return true;
    }
    return false;
  }

  void evict_if_on(int job, const std::vector<int>& nodes) {
    for (const int n : out_.attempts[index(running_.attempt_of[index(job)])].nodes)
      if (std::binary_search(nodes.begin(), nodes.end(), n)) {
        ++out_.preemptions;
        leave(job, attempt_end::preempted);
        return;
      }
  }

  /// Takes a node down, and the jobs on it.
  void lose(int node, attempt_end how) {
    const std::vector<int> jobs(state_.jobs_on(node).begin(), state_.jobs_on(node).end());
    for (const int j : jobs)
      if (!is_steered(j)) leave(j, how);
    state_.take_down(node);
  }

  void requeue_evicted() {
    for (const int job : evicted_) order_.insert(waiting_, job, now_);
    evicted_.clear();
  }

  void fail(const event& e) {
    const bool rack = e.kind == event_kind::rack_failure;
    const int first = rack ? e.id * set_.cluster.nodes_per_rack : e.id;
    const int count = rack ? set_.cluster.nodes_per_rack : 1;
    const double repair = (rack ? set_.failures.rack_repair : set_.failures.node_repair).base();
    if (!rack && state_.down(e.id)) return;  // what is down does not fail again
    ++out_.failures;
    for (int n = first; n < first + count; ++n) {
      lose(n, attempt_end::node_failed);
      add(now_ + repair, event_kind::repair, n);
    }
    requeue_evicted();
  }

  void next_failure(event_kind kind) {
    const bool rack = kind == event_kind::rack_failure;
    const double mtbf = (rack ? set_.failures.rack_mtbf : set_.failures.node_mtbf).base();
    if (mtbf <= 0) return;
    const int things = rack ? set_.cluster.racks : set_.cluster.nodes();
    const double at = now_ + exponential(failures_) * mtbf / things;
    add(at, kind, std::min(things - 1, static_cast<int>(uniform(failures_) * things)));
  }

  template <class F>
  void for_nodes(const maintenance_window& w, F f) const {
    const int per = set_.cluster.nodes_per_rack;
    for (int n = w.first_rack * per; n < (w.first_rack + w.racks) * per; ++n) f(n);
  }

  void begin_window(int w) {
    for_nodes(set_.maintenance[index(w)], [this](int n) { lose(n, attempt_end::maintenance); });
    requeue_evicted();
  }

  void reserve_window(planner& plan, const maintenance_window& w) const {
    if ((w.start + w.length).base() <= now_) return;
    reservation r{w.start.base(), (w.start + w.length).base(), set_.cluster.gpus_per_node, {}};
    for_nodes(w, [&r](int n) { r.nodes.push_back(n); });
    plan.reserve(std::move(r));
  }

  void advance(double to) {
    const double dt = to - now_;
    const auto idle = static_cast<double>(state_.idle_gpus());
    out_.time.idle += dt * idle;
    out_.time.down += dt * static_cast<double>(state_.down_gpus());
    out_.time.idle_in_racks += dt * static_cast<double>(state_.idle_gpus_of_idle_racks());
    if (!waiting_.empty() && demands_[index(waiting_.front())].gpus() <= state_.idle_gpus())
      out_.time.idle_wanted += dt * idle;
    now_ = to;
  }

  void finish() {
    out_.elapsed_s = now_;
    for (const auto& [at, job] : running_.by_limit) {
      job_attempt& a = out_.attempts[index(running_.attempt_of[index(job)])];
      a.end_s = now_;
      account(job, a);
    }
  }

  const std::vector<batch_job>& jobs_;
  const queue_setting& set_;
  cluster_world* world_;  ///< null: nodes fail at the setting's rates, and the queue plays all jobs
  cluster_state state_;
  job_order order_;
  std::vector<queue_rules> rules_;   ///< by queue
  std::vector<job_demand> demands_;  ///< by job
  std::vector<double> remaining_;    ///< work by job, in seconds on its GPUs
  std::vector<std::int64_t> held_by_queue_;
  running_jobs running_;
  std::vector<int> waiting_, evicted_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::mt19937_64 failures_;
  std::int64_t left_ = 0;  ///< jobs that are not done
  double now_ = 0, look_at_ = never, fill_at_ = never, reorder_at_ = never;
  queue_schedule out_;
};

}  // namespace

std::vector<std::vector<const node_move*>> moves_by_attempt(const queue_schedule& s) {
  std::vector<std::vector<const node_move*>> out(s.attempts.size());
  for (const node_move& m : s.moves) out[static_cast<std::size_t>(m.attempt)].push_back(&m);
  return out;
}

std::vector<node_stay> stays_of(const job_attempt& a, const std::vector<const node_move*>& moves) {
  std::vector<node_stay> out;
  std::map<int, double> since;
  const auto begin_of = [&](int node) {
    const auto at = since.find(node);
    return at == since.end() ? a.start_s : at->second;
  };
  for (const node_move* m : moves) {
    for (const int n : m->lost) out.push_back({a.job, n, begin_of(n), m->at_s});
    for (const int n : m->gained) since[n] = m->at_s;
  }
  for (const int n : a.nodes) out.push_back({a.job, n, begin_of(n), a.end_s});
  return out;
}

queue_schedule schedule_jobs(const job_list& jobs, const queue_setting& setting) {
  return cluster_queue_run(jobs, setting, nullptr).run();
}

queue_schedule schedule_jobs(const job_list& jobs, const queue_setting& setting, cluster_world& world) {
  return cluster_queue_run(jobs, setting, &world).run();
}

}  // namespace nvlsim
