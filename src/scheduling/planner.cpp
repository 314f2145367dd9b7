#include "scheduling/planner.hpp"

#include <algorithm>
#include <limits>

namespace nvlsim {
namespace {

bool overlap(const reservation& r, double begin, double end) { return r.begin < end && r.end > begin; }

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

/// Whether a job may have a place in intervals, each after the one before, if all that leave until the end of an
/// interval had left. Reservations come and go once over all intervals.
class sweep {
 public:
  sweep(const cluster_state& state, fitting_nodes fitting, const running_jobs& running,
        const std::vector<job_attempt>& attempts)
      : state_(state), fitting_(std::move(fitting)), running_(running), attempts_(attempts),
        leaves_(running.by_limit.begin()), room_(state.free().begin(), state.free().end()) {
    fitting_.count(room_);
  }

  /// From `from` to `next`, with what is reserved in the time of a job of that length.
  bool may_fit(double from, double next, double limit, const reservations& reserved) {
    taken_.resize(reserved.all.size());
    for (; begun_ < taken_.size() && reserved.by_begin(begun_).begin < from + limit; ++begun_)
      take(reserved, reserved.of_begin[begun_], true);
    for (; ended_ < taken_.size() && reserved.by_end(ended_).end <= from; ++ended_)
      take(reserved, reserved.of_end[ended_], false);
    for (; leaves_ != running_.by_limit.end() && leaves_->first != never && leaves_->first <= next; ++leaves_) {
      const auto job = static_cast<std::size_t>(leaves_->second);
      const job_attempt& a = attempts_[static_cast<std::size_t>(running_.attempt_of[job])];
      for (const int n : a.nodes)
        if (!state_.down(n)) add(n, a.gpus_each);
    }
    return fitting_.enough();
  }

 private:
  /// A reservation that is over before it counts never does.
  void take(const reservations& reserved, std::size_t i, bool begins) {
    const bool changes = taken_[i] == (begins ? not_yet : counts);
    taken_[i] = begins && changes ? counts : over;
    if (!changes) return;
    const reservation& r = reserved.all[i];
    for (const int n : r.nodes) add(n, begins ? -r.gpus_each : r.gpus_each);
  }
  void add(int node, int gpus) {
    int& room = room_[static_cast<std::size_t>(node)];
    fitting_.note(node, room, room + gpus);
    room += gpus;
  }

  enum state_of : char { not_yet, counts, over };
  const cluster_state& state_;
  fitting_nodes fitting_;
  const running_jobs& running_;
  const std::vector<job_attempt>& attempts_;
  std::set<std::pair<double, int>>::const_iterator leaves_;
  std::vector<int> room_;
  std::vector<char> taken_;
  std::size_t begun_ = 0, ended_ = 0;
};

}  // namespace

void planner::find_room(double from, double end) {
  room_.assign(state_.free().begin(), state_.free().end());
  for (const reservation& r : reserved_.all)
    if (overlap(r, from, end))
      for (const int n : r.nodes) {
        std::int16_t& room = room_[static_cast<std::size_t>(n)];
        room = static_cast<std::int16_t>(std::max(room - r.gpus_each, -state_.shape().gpus_per_node * 64));
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
bool planner::kept_free(const planned_start& start, int gpus_each, double limit) {
  const auto [begin, end] = held_for(start.at, limit);
  for (const reservation& r : reserved_.all) {
    if (!overlap(r, begin, end)) continue;
    std::vector<int> both;
    std::set_intersection(r.nodes.begin(), r.nodes.end(), start.nodes.begin(), start.nodes.end(),
                          std::back_inserter(both));
    for (const int n : both)
      if (room_[static_cast<std::size_t>(n)] - r.gpus_each < gpus_each) return false;
  }
  return true;
}

planned_start planner::earliest(const job_demand& demand, double limit, double from, const running_jobs& running,
                                const std::vector<job_attempt>& attempts) {
  sweep nodes(state_, {state_.shape(), kind_, demand}, running, attempts);
  while (from < never) {
    const double next = reserved_.next_change(from);
    if (!nodes.may_fit(from, next, limit, reserved_)) {
      from = next;
      continue;
    }
    find_room(from, from + limit);
    planned_start start{now_, {}};
    fitting_nodes fitting(state_.shape(), kind_, demand);
    fitting.count(room_);
    if (fitting.enough()) start.nodes = place_job(state_.shape(), kind_, demand, room_);
    for (auto r = running.by_limit.begin(); start.nodes.empty() && r != running.by_limit.end(); ++r) {
      if (r->first == never || r->first > next) break;
      const job_attempt& a =
          attempts[static_cast<std::size_t>(running.attempt_of[static_cast<std::size_t>(r->second)])];
      const int before = fitting.all();
      for (const int n : a.nodes) {
        if (state_.down(n)) continue;
        std::int16_t& room = room_[static_cast<std::size_t>(n)];
        fitting.note(n, room, room + a.gpus_each);
        room = static_cast<std::int16_t>(room + a.gpus_each);
      }
      start.at = r->first;
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

}  // namespace nvlsim
