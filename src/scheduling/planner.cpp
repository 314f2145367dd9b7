#include "scheduling/planner.hpp"

#include <algorithm>
#include <limits>
#include <memory>

namespace nvlsim {
namespace {

bool overlap(const reservation& r, double begin, double end) { return r.begin < end && r.end > begin; }

}  // namespace

/// How many nodes have enough room for a job, in all and in whole segments of one rack.
class fitting_nodes {
 public:
  fitting_nodes(const queue_cluster& shape, placement_kind kind, const job_demand& demand)
      : shape_(shape), demand_(demand), in_rack_(static_cast<std::size_t>(shape.racks)) {
    // As placement takes them: without segments, a rack or all nodes of a smaller job.
    if (kind == placement_kind::block)
      segment_ = std::min(demand.segment > 0 ? demand.segment : shape.nodes_per_rack, demand.nodes);
  }

  template <class Room>
  void count(const Room& room) {
    for (std::size_t n = 0; n < room.size(); ++n)
      if (room[n] >= demand_.gpus_each) change(static_cast<int>(n), 1);
  }
  /// A node had room for `before` GPUs and has it for `after`.
  void note(int node, int before, int after) {
    if (const int by = (after >= demand_.gpus_each) - (before >= demand_.gpus_each); by != 0) change(node, by);
  }
  /// False only if the job has no place.
  bool enough() const { return all_ >= demand_.nodes && (segment_ == 0 || segments_ >= demand_.nodes / segment_); }
  int all() const { return all_; }

 private:
  void change(int node, int by) {
    all_ += by;
    if (segment_ == 0) return;
    int& here = in_rack_[static_cast<std::size_t>(node / shape_.nodes_per_rack)];
    segments_ -= here / segment_;
    here += by;
    segments_ += here / segment_;
  }

  const queue_cluster& shape_;
  const job_demand& demand_;
  std::vector<int> in_rack_;
  int segment_ = 0, all_ = 0, segments_ = 0;
};

/// The nodes' room in a window of time that moves forward: what is reserved in it is taken, and what running jobs
/// leave until then may be given. A copy goes on from where it is.
class window_sweep {
 public:
  window_sweep(const cluster_state& state, fitting_nodes fitting)
      : fitting_(std::move(fitting)), free_(state.free().begin(), state.free().end()), room_(free_) {
    fitting_.count(room_);
  }

  /// To a window that begins and ends no sooner than the one before.
  void move(double begin, double end, const reservations& reserved) {
    if (seen_ < reserved.all.size()) {
      for (; seen_ < reserved.all.size(); ++seen_)
        if (const reservation& r = reserved.all[seen_]; overlap(r, begin_, end_)) take(r, -1);
      begun_ = reserved.first_begin(end_);
      ended_ = reserved.first_end_after(begin_);
    }
    for (; begun_ < seen_ && reserved.by_begin(begun_).begin < end; ++begun_)
      if (reserved.by_begin(begun_).end > begin) take(reserved.by_begin(begun_), -1);
    for (; ended_ < seen_ && reserved.by_end(ended_).end <= begin; ++ended_)
      if (reserved.by_end(ended_).begin < end_) take(reserved.by_end(ended_), 1);
    begin_ = begin;
    end_ = end;
  }

  /// False only if the job has no place, if all that leave until `next` had left.
  bool may_fit(double next, const departures& leaving) {
    for (; left_ < leaving.list.size() && leaving.list[left_].at <= next; ++left_)
      for (const int n : leaving.nodes_of(left_)) add(n, leaving.list[left_].gpus_each);
    return fitting_.enough();
  }

  /// What is free now less what is reserved in the window, by node.
  const std::vector<int>& free() const { return free_; }

 private:
  void take(const reservation& r, int sign) {
    for (const int n : r.nodes) {
      free_[static_cast<std::size_t>(n)] += sign * r.gpus_each;
      add(n, sign * r.gpus_each);
    }
  }
  void add(int node, int gpus) {
    int& room = room_[static_cast<std::size_t>(node)];
    fitting_.note(node, room, room + gpus);
    room += gpus;
  }

  fitting_nodes fitting_;
  std::vector<int> free_, room_;  ///< without and with what has left
  double begin_ = -never, end_ = -never;
  std::size_t left_ = 0;                          ///< departures
  std::size_t seen_ = 0, begun_ = 0, ended_ = 0;  ///< reservations
};

namespace {

departures departures_of(const cluster_state& state, const running_jobs& running,
                         const std::vector<job_attempt>& attempts) {
  departures out;
  for (const auto& [at, job] : running.by_limit) {
    if (at == never) break;
    const int attempt = running.attempt_of[static_cast<std::size_t>(job)];
    const job_attempt& a = attempts[static_cast<std::size_t>(attempt)];
    for (const int n : a.nodes)
      if (!state.down(n)) out.nodes.push_back(n);
    out.list.push_back({at, a.gpus_each, out.nodes.size()});
  }
  return out;
}

}  // namespace

void planner::find_room(double from, double end) {
  room_.assign(state_.free().begin(), state_.free().end());
  for (const reservation& r : reserved_.all)
    if (overlap(r, from, end))
      for (const int n : r.nodes) {
        std::int16_t& room = room_[static_cast<std::size_t>(n)];
        room = static_cast<std::int16_t>(std::max(room - r.gpus_each, min_room()));
      }
}

void reservations::add(reservation r) {
  const auto put = [&](std::vector<std::size_t>& order, double reservation::*time) {
    const auto later = [&](double t, std::size_t other) { return t < all[other].*time; };
    order.insert(std::upper_bound(order.begin(), order.end(), r.*time, later), all.size());
    changes.insert(std::upper_bound(changes.begin(), changes.end(), r.*time), r.*time);
  };
  put(of_begin, &reservation::begin);
  put(of_end, &reservation::end);
  all.push_back(std::move(r));
}

std::size_t reservations::first_begin(double from) const {
  const auto i =
      std::partition_point(of_begin.begin(), of_begin.end(), [&](std::size_t r) { return all[r].begin < from; });
  return static_cast<std::size_t>(i - of_begin.begin());
}

std::size_t reservations::first_end_after(double time) const {
  const auto i =
      std::partition_point(of_end.begin(), of_end.end(), [&](std::size_t r) { return all[r].end <= time; });
  return static_cast<std::size_t>(i - of_end.begin());
}

double reservations::next_change(double after) const {
  const auto next = std::upper_bound(changes.begin(), changes.end(), after);
  return next == changes.end() ? never : *next;
}

std::vector<int> planner::now(const job_demand& demand, double limit) {
  if (!state_.has_room(demand)) return {};
  if (reserved_.all.empty()) return place_job(state_.shape(), kind_, demand, state_.free());
  find_room(now_, now_ + limit);
  return place_job(state_.shape(), kind_, demand, room_);
}

std::pair<double, double> planner::held_for(double at, double limit) const {
  const double begin = std::max(grid_.last_before(at), now_), end = grid_.last_before(at + limit);
  return {begin, std::max(end, begin + grid_.step)};
}

void planner::promise(planned_start start, double limit, int gpus_each) {
  const auto [begin, end] = held_for(start.at, limit);
  reserve({begin, end, gpus_each, std::move(start.nodes)});
}

/// Whether no reservation needs those nodes in the time of a job of that length.
bool planner::kept_free(const planned_start& start, int gpus_each, double limit) const {
  const auto [begin, end] = held_for(start.at, limit);
  return std::none_of(reserved_.all.begin(), reserved_.all.end(), [&, b = begin, e = end](const reservation& r) {
    return overlap(r, b, e) && std::any_of(r.nodes.begin(), r.nodes.end(), [&](int n) {
             return room_[static_cast<std::size_t>(n)] - r.gpus_each < gpus_each &&
                    std::binary_search(start.nodes.begin(), start.nodes.end(), n);
           });
  });
}

planned_start planner::search(const job_demand& demand, double limit, double from, window_sweep& nodes) {
  while (from < never) {
    const double next = reserved_.next_change(from);
    nodes.move(from, from + limit, reserved_);
    if (!nodes.may_fit(next, leaving_)) {
      from = next;
      continue;
    }
    std::transform(nodes.free().begin(), nodes.free().end(), room_.begin(),
                   [this](int gpus) { return static_cast<std::int16_t>(std::max(gpus, min_room())); });
    planned_start start{now_, {}};
    fitting_nodes fitting(state_.shape(), kind_, demand);
    fitting.count(room_);
    if (fitting.enough()) start.nodes = place_job(state_.shape(), kind_, demand, room_);
    for (std::size_t i = 0; start.nodes.empty() && i < leaving_.list.size(); ++i) {
      const departures::one& leaves = leaving_.list[i];
      if (leaves.at > next) break;
      const int before = fitting.all();
      for (const int n : leaving_.nodes_of(i)) {
        std::int16_t& room = room_[static_cast<std::size_t>(n)];
        fitting.note(n, room, room + leaves.gpus_each);
        room = static_cast<std::int16_t>(room + leaves.gpus_each);
      }
      start.at = leaves.at;
      if (fitting.all() > before && fitting.enough())
        start.nodes = place_job(state_.shape(), kind_, demand, room_);
    }
    start.at = std::max(start.at, from);
    if (!start.nodes.empty() && start.at <= next) {
      if (start.at == from || kept_free(start, demand.gpus_each, limit)) return start;
      from = start.at;
    } else {
      from = next;
    }
  }
  return {};
}

planned_start planner::earliest(const job_demand& demand, double limit, const running_jobs& running,
                                const std::vector<job_attempt>& attempts) {
  std::vector<known_start>& known = known_[{demand.nodes, demand.gpus_each, demand.segment}];
  const auto longer = std::upper_bound(known.begin(), known.end(), limit,
                                       [](double l, const known_start& k) { return l < k.limit; });
  const known_start* best = longer == known.begin() ? nullptr : &*(longer - 1);
  if (!knows_leaving_) leaving_ = departures_of(state_, running, attempts);
  knows_leaving_ = true;
  const auto nodes = best && best->nodes
                         ? std::make_shared<window_sweep>(*best->nodes)
                         : std::make_shared<window_sweep>(state_, fitting_nodes(state_.shape(), kind_, demand));
  planned_start start = search(demand, limit, best ? std::max(now_, best->at) : now_, *nodes);
  const double at = start.nodes.empty() ? never : start.at;
  // What is longer and known to start no later says nothing more.
  const auto end = std::find_if(longer, known.end(), [at](const known_start& k) { return k.at > at; });
  known.insert(known.erase(longer, end), {limit, at, nodes});
  return start;
}

void planner::forget_room() {
  for (auto& [form, known] : known_)
    for (known_start& k : known) k.nodes.reset();
  knows_leaving_ = false;
}

}  // namespace nvlsim
