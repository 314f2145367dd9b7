// Several plans as one, whose classes meet on the network.
#pragma once

#include <cstdint>
#include <string>

#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// Adds the classes of `one`, which begin at `start`, under names with a prefix ("a: stage 0"). Returns the number
/// of the first.
std::int32_t add_plan(plan& all, const plan& one, const std::string& prefix, seconds start);
/// The times of `one` in a timeline of `all`, to which it was added as class `first`. Times count from `start`.
timeline times_of(const timeline& all, const plan& one, std::int32_t first, seconds start);

/// Traffic that asks for no more than its rate, through the ports of a class.
struct steady_traffic {
  std::string name;
  network_traffic each;  ///< of one flow
  seconds duration;      ///< without other traffic
  std::int64_t flows = 1;
  seconds start;
};
/// Adds it to class `c`, as streams of their own.
void add_traffic(plan& all, std::int32_t c, const steady_traffic& t);

}  // namespace nvlsim
