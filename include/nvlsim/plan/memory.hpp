// GPU memory of a workload, every byte with its reason.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct memory_item {
  std::string
      name;  ///< "weights", "gradients", "optimizer", "activations", "kv_cache", "logits", "workspace", "reserve"
  bytes size;          ///< on one GPU
  std::string reason;  ///< how it comes about: "2 B x 6.4 G parameters / TP 2"
};

/// Worst error of a training step's peak, as a share of it: derived, of the 19 distinct peaks of memory.csv
/// (SimuMax). [docs/accuracy.md#memory]
inline constexpr double training_memory_error = 0.012;

/// Of the fullest GPU.
struct memory_report {
  std::string where;  ///< "stage 0", "each GPU"
  std::vector<memory_item> items;
  bytes peak;  ///< sum of the items
  bytes usable;
  bytes offloaded = {}, offload_room = {};  ///< of this GPU in CPU memory, and its share of that
  bool fits() const { return peak <= usable && offloaded <= offload_room; }
};

}  // namespace nvlsim
