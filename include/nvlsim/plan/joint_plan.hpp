// Several plans as one, whose classes meet on the network.
#pragma once

#include <cstdint>
#include <string>

#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// When a plan begins, and how often it runs: the next time when all of its streams have done the last.
struct repetition {
  seconds start;
  std::int64_t times = 1;
};

/// Adds the classes of `one` under names with a prefix ("a: stage 0"). Returns the number of the first.
std::int32_t add_plan(plan& all, const plan& one, const std::string& prefix, const repetition& r);
/// The last times of `one` in a timeline of `all`, to which it was added as class `first`. They count from when it
/// began for the last time.
timeline times_of(const timeline& all, const plan& one, std::int32_t first, const repetition& r);

/// Traffic that asks for no more than its rate, through the ports of a class.
struct steady_traffic {
  std::string name;
  network_traffic each;  ///< of one flow
  seconds duration;      ///< without other traffic
  std::int64_t flows = 1;
  seconds start;
  std::int64_t pieces = 1;  ///< operations that each flow consists of, one after the other
};
/// Adds it to class `c`, as streams of their own.
void add_traffic(plan& all, std::int32_t c, const steady_traffic& t);

}  // namespace nvlsim
