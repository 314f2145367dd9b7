// Lower bounds of the step times of layouts.
#pragma once

#include <cstdint>
#include <memory>

#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// Lower bounds of step times. Remembers the passes of the last layout, so ask for layouts that differ only in
/// their schedule, chunks and stages one after another. Not thread-safe.
class step_floor {
 public:
  /// All arguments must outlive it.
  step_floor(const platform& p, const stack& s, const model& m);
  ~step_floor();
  step_floor(const step_floor&) = delete;

  /// A step of `w` takes no less, and neither does one that shards otherwise, offloads more or recomputes more:
  /// the compute of its busiest stage, and the passes of one micro-batch through the stages before it. Requires
  /// healthy hardware, the same recomputation in all layers, and training_problems() to be empty.
  /// [docs/search.md#bounds]
  seconds of(const training_workload& w);
  /// Number of passes through layers that were priced.
  std::int64_t priced() const;

 private:
  struct passes;
  std::unique_ptr<passes> known_;
};

}  // namespace nvlsim
