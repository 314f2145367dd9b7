// Failures of components: when and where they occur, and their effect on a job.
#pragma once

#include <optional>

#include "nvlsim/operation/operation_run.hpp"

namespace nvlsim {

/// The random samples of a failure. Every failure takes equally many, so policies do not change later failures.
struct chance {
  double accepted = 0, lemon = 0, pick = 0, watched = 0, repair = 0, found = 0, second = 0, second_pick = 0;
};

/// A failure of a component on a tray.
struct strike {
  std::int32_t component = 0;
  std::int64_t tray = 0;
  chance sample;
  std::int64_t beside = 0;  ///< which of the parts of its kind that share the tray, or the tray's leaves
};

/// Orders the first failure of each kind and chooses the lemon trays.
void begin_failures(operation_state& s, std::uint64_t seed);
/// Orders the next failure of a kind. Returns and counts the one that is due; empty if it does not occur.
std::optional<strike> next_strike(operation_state& s, std::int32_t component);
/// Applies a failure to the trays of a state and to its job.
void suffer(operation_state& s, const strike& x);
/// Takes down what a component takes down and orders its repair.
void break_part(operation_state& s, std::int32_t component, std::int64_t tray, double repair);
/// Handles the detection of wrong numbers. If the job is not running, the check is repeated later.
void find_corruption(operation_state& s, const operation_event& e);
/// The job saves what it has if it runs on the part that will go.
void save_before_reclaim(operation_state& s, const operation_event& e);
/// A part goes back to its seller. A job that saved for it, or saves in no time, redoes nothing.
void reclaim(operation_state& s, const operation_event& e);
/// Completes a repair.
void mend(operation_state& s, const operation_event& e);

}  // namespace nvlsim
