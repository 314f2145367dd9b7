// When and where waiting jobs can start, if running jobs use their full time limits.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "nvlsim/scheduling/policy.hpp"
#include "scheduling/cluster_state.hpp"

namespace nvlsim {

/// A time that never comes, s.
constexpr double never = std::numeric_limits<double>::infinity();

/// Times at which reservations begin and end: every `step` seconds from `-offset` on; 0: any time.
struct time_grid {
  double step = 0, offset = 0;

  double last_before(double t) const {
    return step > 0 && t < never ? std::floor((t + offset) / step) * step - offset : t;
  }
};

/// Reserved nodes.
struct reservation {
  double begin = 0, end = 0;
  int gpus_each = 0;
  std::vector<int> nodes;
};

/// All reservations, and their order in time.
struct reservations {
  std::vector<reservation> all;
  std::vector<std::size_t> of_begin, of_end;  ///< indices, ascending by those times
  std::vector<double> changes;                ///< begins and ends, ascending

  void add(reservation r);
  const reservation& by_begin(std::size_t i) const { return all[of_begin[i]]; }
  const reservation& by_end(std::size_t i) const { return all[of_end[i]]; }
  /// Positions in these orders: the first begin at or after a time, and the first end after a time.
  std::size_t first_begin(double from) const;
  std::size_t first_end_after(double time) const;
  /// The next begin or end after a time.
  double next_change(double after) const;
};

/// A planned start; without nodes, none is known.
struct planned_start {
  double at = 0;
  std::vector<int> nodes;
};

/// Running jobs by their latest end.
struct running_jobs {
  std::set<std::pair<double, int>> by_limit;  ///< time, job
  std::vector<int> attempt_of;                ///< by job: index of its last attempt; -1: none
};

/// Running jobs in order of their latest end, with those of their nodes that are up.
struct departures {
  struct one {
    double at = 0;
    int gpus_each = 0;
    std::size_t end = 0;  ///< end of its nodes in `nodes`
  };
  std::vector<one> list;  ///< ascending
  std::vector<int> nodes;

  std::span<const int> nodes_of(std::size_t i) const {
    const std::size_t first = i == 0 ? 0 : list[i - 1].end;
    return {nodes.data() + first, list[i].end - first};
  }
};

class window_sweep;

/// Plans of one scheduling pass, made as in Slurm's backfill: a job is tried now, then at each time that running
/// jobs leave, then from the next begin or end of a reservation.
class planner {
 public:
  planner(const cluster_state& state, placement_kind kind, const time_grid& grid, double now)
      : state_(state), kind_(kind), grid_(grid), now_(now), room_(state.free().begin(), state.free().end()) {}

  void reserve(reservation r) { reserved_.add(std::move(r)); }
  /// Reserves the nodes of a planned start for a job of that length.
  void promise(planned_start start, double limit, int gpus_each);
  /// Nodes on which a job of that length can start now and end before they are reserved; empty if none.
  std::vector<int> now(const job_demand& demand, double limit);
  /// The earliest start, but not before that of an earlier job with the same demand and no longer limit.
  planned_start earliest(const job_demand& demand, double limit, const running_jobs& running,
                         const std::vector<job_attempt>& attempts);
  /// Must be called after jobs start or leave during a pass.
  void forget_room();

 private:
  /// Jobs with the same demand and at least this limit start at `at` or later.
  struct known_start {
    double limit = 0, at = 0;
    std::shared_ptr<const window_sweep> nodes;  ///< state at the last window tried; null: discarded
  };
  planned_start search(const job_demand& demand, double limit, double from, window_sweep& nodes);
  /// Lower values of `room_` are treated as equal.
  int min_room() const { return -state_.shape().gpus_per_node * 64; }

  /// Sets `room_` to the GPUs, free now, that a job may hold from `from` until `end`.
  void find_room(double from, double end);
  bool kept_free(const planned_start& start, int gpus_each, double limit) const;
  /// Begin and end, on the grid, of the reservation for a job planned to start at `at`.
  std::pair<double, double> held_for(double at, double limit) const;

  const cluster_state& state_;
  placement_kind kind_;
  time_grid grid_;
  double now_;
  reservations reserved_;
  /// By nodes, GPUs per node and segment; each list is ascending in limit and time.
  std::map<std::tuple<int, int, int>, std::vector<known_start>> known_;
  departures leaving_;
  bool knows_leaving_ = false;
  std::vector<std::int16_t> room_;  ///< by node; negative where more GPUs are reserved than free
};

}  // namespace nvlsim
