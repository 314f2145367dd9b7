// When and where jobs that wait could start, if running jobs take as long as they may.
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

/// A time that does not come, s.
constexpr double never = std::numeric_limits<double>::infinity();

/// The times at which promises begin and end: every `step` seconds from `-offset` on; 0: any time.
struct time_grid {
  double step = 0, offset = 0;

  double last_before(double t) const {
    return step > 0 && t < never ? std::floor((t + offset) / step) * step - offset : t;
  }
};

/// Nodes that are promised.
struct reservation {
  double begin = 0, end = 0;
  int gpus_each = 0;
  std::vector<int> nodes;
};

/// All of them, and their order in time.
struct reservations {
  std::vector<reservation> all;
  std::vector<std::size_t> of_begin, of_end;  ///< indices, ascending by those times
  std::vector<double> changes;                ///< begins and ends, ascending

  void add(reservation r);
  const reservation& by_begin(std::size_t i) const { return all[of_begin[i]]; }
  const reservation& by_end(std::size_t i) const { return all[of_end[i]]; }
  /// Places in those orders: of the first begin from a time on, and of the first end after it.
  std::size_t first_begin(double from) const;
  std::size_t first_end_after(double time) const;
  /// The next begin or end after a time.
  double next_change(double after) const;
};

/// A start; without nodes there is none in sight.
struct planned_start {
  double at = 0;
  std::vector<int> nodes;
};

/// Running jobs by the time when they are gone at the latest.
struct running_jobs {
  std::set<std::pair<double, int>> by_limit;  ///< time, job
  std::vector<int> attempt_of;                ///< by job: index of its last attempt; -1: none
};

/// Running jobs as they leave at the latest, with their nodes that are up.
struct departures {
  struct one {
    double at = 0;
    int gpus_each = 0;
    std::size_t end = 0;  ///< of its nodes in `nodes`
  };
  std::vector<one> list;  ///< ascending
  std::vector<int> nodes;

  std::span<const int> nodes_of(std::size_t i) const {
    const std::size_t first = i == 0 ? 0 : list[i - 1].end;
    return {nodes.data() + first, list[i].end - first};
  }
};

class window_sweep;

/// Plans of one look at the queue, as Slurm's backfill makes them: a job is tried now, then each time that running
/// jobs leave, then from the next time that a reservation begins or ends.
class planner {
 public:
  planner(const cluster_state& state, placement_kind kind, const time_grid& grid, double now)
      : state_(state), kind_(kind), grid_(grid), now_(now), room_(state.free().begin(), state.free().end()) {}

  void reserve(reservation r) { reserved_.add(std::move(r)); }
  /// Promises a job of that length the nodes that it is planned to have.
  void promise(planned_start start, double limit, int gpus_each);
  /// Nodes on which a job of that length can start now and be gone before they are promised, or none.
  std::vector<int> now(const job_demand& demand, double limit);
  /// The first start, no sooner than that of a job before it that asked for as many nodes and no more time.
  planned_start earliest(const job_demand& demand, double limit, const running_jobs& running,
                         const std::vector<job_attempt>& attempts);
  /// Jobs have started or left during the look.
  void forget_room();

 private:
  /// Jobs of a form with that limit or a longer one start at `at` or later.
  struct known_start {
    double limit = 0, at = 0;
    std::shared_ptr<const window_sweep> nodes;  ///< at the last window that was tried; null: forgotten
  };
  planned_start search(const job_demand& demand, double limit, double from, window_sweep& nodes);
  /// Rooms lower than this are not told apart.
  int least_room() const { return -state_.shape().gpus_per_node * 64; }

  /// Sets `room_` to what a job that may start at `from` and stay until `end` can have of what is free now.
  void find_room(double from, double end);
  bool kept_free(const planned_start& start, int gpus_each, double limit) const;
  /// When a job that is planned to start at `at` has its nodes, on the grid.
  std::pair<double, double> held_for(double at, double limit) const;

  const cluster_state& state_;
  placement_kind kind_;
  time_grid grid_;
  double now_;
  reservations reserved_;
  /// By nodes, GPUs of each and segment: ascending in both.
  std::map<std::tuple<int, int, int>, std::vector<known_start>> known_;
  departures leaving_;
  bool knows_leaving_ = false;
  std::vector<std::int16_t> room_;  ///< by node; less than 0 where more is promised than is free
};

}  // namespace nvlsim
