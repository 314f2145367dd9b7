// One store that several jobs save to.
#pragma once

#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// A job that saves from time to time.
struct store_writer {
  bytes state;     ///< of a copy
  bandwidth most;  ///< that its trays write together
  seconds cycle;   ///< from the begin of one copy to that of the next, if the store keeps up
};

/// Mean time of each writer's copies on a store that takes `together`, which writers under way share by max-min:
/// nobody gets more than it can write, and what it leaves goes to the others. A copy begins when its cycle is over
/// and the one before is complete. Cycles begin at times that do not repeat, and many are played. A lone writer
/// takes state / min(most, together).
std::vector<seconds> copy_times_together(const std::vector<store_writer>& writers, bandwidth together);

}  // namespace nvlsim
