// Who waits for which event of a plan, and what to say when nobody can go on. Shared by `evaluate` and the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// A stream of a plan by position, and how far it got.
struct stream_position {
  std::int32_t rank_class = 0, stream = 0;
  std::uint32_t operation = 0;
};

/// All streams of a plan that have operations, in plan order.
std::vector<stream_position> busy_streams(const plan& p);

/// "stage 0.compute"
std::string stream_name(const plan& p, const stream_position& s);

/// Throws internal_error if the plan is malformed: an index out of range, a duration that is negative or not
/// finite, a demand on the network that is so or begins after its operation ends, or an event that more operations
/// signal than it has arrivals.
void check_plan(const plan& p);

/// The events of one run. A waiter is the index of a stream, which waits for one event at a time.
class event_board {
 public:
  event_board(const plan& p, std::size_t waiters);

  bool happened(event_id e) const { return events_[index(e)].missing == 0; }
  /// When the event happened; meaningful only then.
  double date(event_id e) const { return events_[index(e)].date; }
  std::int32_t missing(event_id e) const { return events_[index(e)].missing; }

  void enrol(event_id e, std::int32_t waiter) {
    next_[static_cast<std::size_t>(waiter)] = events_[index(e)].first_waiter;
    events_[index(e)].first_waiter = waiter;
  }

  /// One arrival at `date`. The one that makes the event happen calls `wake(waiter)` for each waiter; the event
  /// happened when the latest of its arrivals came. `wake` may let waiters enrol elsewhere.
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

/// Names the streams that stand still, the operation each of them is at and the events it waits for.
std::string deadlock_text(const plan& p, const event_board& events, const std::vector<stream_position>& stuck);

}  // namespace nvlsim
