// Failures of components: when, where, and what they do to a job.
#pragma once

#include <optional>

#include "nvlsim/operation/operation_run.hpp"

namespace nvlsim {

/// What chance decides about a failure. Every failure draws the same, so that policies do not change the next
/// ones.
struct chance {
  double accepted = 0, lemon = 0, pick = 0, watched = 0, repair = 0, found = 0, second = 0, second_pick = 0;
};

/// A failure of a component on a tray.
struct strike {
  std::int32_t component = 0;
  std::int64_t tray = 0;
  chance drawn;
};

/// Orders the first failure of each kind, and chooses lemons.
void begin_failures(operation_state& s, std::uint64_t seed);
/// The failure of a kind that is due, if it is one, counted; orders the next.
std::optional<strike> next_strike(operation_state& s, std::int32_t component);
/// What a failure does to the trays that a state knows, and to its job.
void suffer(operation_state& s, const strike& x);
/// Breaks what a component takes down until its repair, which is ordered.
void break_part(operation_state& s, std::int32_t component, std::int64_t tray, double repair);
/// Somebody noticed wrong numbers. A job that is not running has none to look at, and is looked at later.
void find_corruption(operation_state& s, const operation_event& e);
/// A repair is done.
void mend(operation_state& s, const operation_event& e);

}  // namespace nvlsim
