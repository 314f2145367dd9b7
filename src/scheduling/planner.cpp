#include "scheduling/planner.hpp"

#include <algorithm>
#include <limits>

namespace nvlsim {
namespace {

bool overlap(const reservation& r, double begin, double end) { return r.begin < end && r.end > begin; }

}  // namespace

void planner::find_room(double from, double end) {
  room_.assign(state_.free().begin(), state_.free().end());
  for (const reservation& r : reserved_)
    if (overlap(r, from, end))
      for (const int n : r.nodes) {
        std::int16_t& room = room_[static_cast<std::size_t>(n)];
        room = static_cast<std::int16_t>(std::max(room - r.gpus_each, -state_.shape().gpus_per_node * 64));
      }
}

double planner::next_change(double after) const {
  double next = never;
  for (const reservation& r : reserved_)
    for (const double t : {r.begin, r.end})
      if (t > after) next = std::min(next, t);
  return next;
}

std::vector<int> planner::now(const job_demand& demand, double limit) {
  if (!state_.has_room(demand)) return {};
  if (reserved_.empty()) return place_job(state_.shape(), kind_, demand, state_.free());
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
  for (const reservation& r : reserved_) {
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
  const auto fits = [&](int n) { return room_[static_cast<std::size_t>(n)] >= demand.gpus_each; };
  while (from < never) {
    const double next = next_change(from);
    find_room(from, from + limit);
    planned_start start{now_, {}};
    int fitting = 0;
    for (int n = 0; n < state_.shape().nodes(); ++n) fitting += fits(n);
    if (fitting >= demand.nodes) start.nodes = place_job(state_.shape(), kind_, demand, room_);
    for (auto r = running.by_limit.begin(); start.nodes.empty() && r != running.by_limit.end(); ++r) {
      if (r->first == never || r->first > next) break;
      const job_attempt& a =
          attempts[static_cast<std::size_t>(running.attempt_of[static_cast<std::size_t>(r->second)])];
      const int before = fitting;
      for (const int n : a.nodes) {
        if (state_.down(n)) continue;
        fitting -= fits(n);
        std::int16_t& room = room_[static_cast<std::size_t>(n)];
        room = static_cast<std::int16_t>(room + a.gpus_each);
        fitting += fits(n);
      }
      start.at = r->first;
      if (fitting >= demand.nodes && fitting > before)
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
