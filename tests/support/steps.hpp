// Guards against work that grows too fast, by counting and not by the clock: the same on any machine, however
// busy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nvlsim::test {

/// Basic blocks that the counted sources of this test (tests/CMakeLists.txt) have run.
std::int64_t steps_so_far();

template <class Run>
std::int64_t steps_of(Run run) {
  const std::int64_t before = steps_so_far();
  run();
  return steps_so_far() - before;
}

/// Whether `prepare(8 n)()` takes about 8 times the steps of `prepare(n)()`, with room for logarithms. What visits
/// all for each would take 64 times as many.
template <class Prepare>
bool grows_in_proportion(std::size_t n, Prepare prepare) {
  const std::int64_t small = steps_of(prepare(n)), large = steps_of(prepare(8 * n));
  return small > static_cast<std::int64_t>(n) && large < 12 * small;  // fewer: it is not counted
}

}  // namespace nvlsim::test
