// How full GPU memory is as a run goes on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/result.hpp"

namespace nvlsim {

struct memory_curve {
  std::string name;                               ///< "stage 1"
  std::vector<std::pair<double, double>> points;  ///< seconds, bytes; holds from one point to the next
};

/// Of a training step: of the fullest stage, what does not change plus activations, which grow with the forward
/// work that is done and shrink with the backward work. Of an inference run: of each class of replicas, the same
/// with the tokens in the cache. At most `most` points each. [docs/models-and-assumptions.md#memory-over-time]
std::vector<memory_curve> memory_over_time(const run_record& run, std::size_t most);

}  // namespace nvlsim
