// The events of a running plan, the streams that wait for them, and the report of a deadlock. Used by `evaluate`
// and by the simulation engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// A stream of a plan by position, and its current operation.
struct stream_position {
  std::int32_t rank_class = 0, stream = 0;
  std::uint32_t operation = 0;
};

/// All streams of a plan that have operations, in plan order.
std::vector<stream_position> busy_streams(const plan& p);

/// "stage 0.compute"
std::string stream_name(const plan& p, const stream_position& s);

/// Throws internal_error if the plan is malformed: an index is out of range, a duration or a network demand is
/// negative or not finite, a demand begins after its operation ends, or an event is signalled more often than it
/// has arrivals.
void check_plan(const plan& p);

/// The events of one run. A waiter is the index of a stream, which waits for one event at a time.
class event_board {
 public:
  event_board(const plan& p, std::size_t waiters);

  bool happened(event_id e) const { return events_[index(e)].missing == 0; }
  /// Time at which the event happened. Requires that it happened.
  double date(event_id e) const { return events_[index(e)].date; }
  std::int32_t missing(event_id e) const { return events_[index(e)].missing; }

  void enrol(event_id e, std::int32_t waiter) {
    next_[static_cast<std::size_t>(waiter)] = events_[index(e)].first_waiter;
    events_[index(e)].first_waiter = waiter;
  }

  /// Records an arrival at `date`. The last arrival that the event needs calls `wake(waiter)` for each waiter. The
  /// event happens at the latest date of its arrivals. `wake` may enrol waiters for other events.
  template <class Wake>
  void arrive(event_id e, double date, Wake&& wake) {
    state& s = events_[index(e)];
    if (date > s.date) s.date = date;
    if (--s.missing > 0) return;
    for (std::int32_t w = s.first_waiter; w != none;) {
      const std::int32_t next = next_[static_cast<std::size_t>(w)];
      wake(w);
      w = next;
    }
  }

 private:
  static constexpr std::int32_t none = -1;
  struct state {
    double date = 0;
    std::int32_t missing = 1;
    std::int32_t first_waiter = none;
  };
  static std::size_t index(event_id e) { return static_cast<std::size_t>(e); }

  std::vector<state> events_;
  std::vector<std::int32_t> next_;  ///< by waiter
};

/// The report of a deadlock: the blocked streams, the operation of each, and the events that it waits for.
std::string deadlock_text(const plan& p, const event_board& events, const std::vector<stream_position>& stuck);

}  // namespace nvlsim
