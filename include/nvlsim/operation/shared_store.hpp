// One store that several jobs save to.
#pragma once

#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// A job that saves at intervals.
struct store_writer {
  bytes state;         ///< size of a copy
  bandwidth max_rate;  ///< total write rate of its trays
  seconds cycle;       ///< from the start of one copy to the start of the next, if the store keeps up
};

/// Mean copy time of each writer on a store with write bandwidth `together`. Active writers share it max-min
/// fairly: none gets more than `max_rate`, and the others share the rest. A copy starts when its cycle is over and
/// the previous copy is complete. Many cycles are simulated, with start times that do not repeat. A lone writer
/// takes state / min(max_rate, together).
std::vector<seconds> copy_times_together(const std::vector<store_writer>& writers, bandwidth together);

}  // namespace nvlsim
