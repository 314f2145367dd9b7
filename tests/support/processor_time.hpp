// Guards against work that grows too fast, in processor time and by comparison: neither a busy nor a slow machine
// fails them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>

namespace nvlsim::test {

/// Processor seconds of the quickest of three runs.
template <class Run>
double processor_seconds(Run run) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    run();
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

/// Whether `prepare(8 n)()` takes about 8 times as long as `prepare(n)()`, with room for logarithms, caches and the
/// clock. What visits all for each would take 64 times as long.
template <class Prepare>
bool grows_in_proportion(std::size_t n, Prepare prepare) {
  const double small = processor_seconds(prepare(n)), large = processor_seconds(prepare(8 * n));
  return large < 24 * small + 0.02;
}

}  // namespace nvlsim::test
