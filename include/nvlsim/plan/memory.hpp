// GPU memory of a workload, with a reason for each item.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct memory_item {
  std::string
      name;  ///< "weights", "gradients", "optimizer", "activations", "kv_cache", "logits", "workspace", "reserve"
  bytes size;          ///< on one GPU
  std::string reason;  ///< how it is computed: "2 B x 6.4 G parameters / TP 2"
};

/// Largest relative error of the memory peak of a training step, over the 19 distinct peaks of memory.csv
/// (SimuMax). [docs/accuracy.md#memory]
inline constexpr double training_memory_error = 0.012;

/// Memory of the fullest GPU.
struct memory_report {
  std::string where;  ///< "stage 0", "each GPU"
  std::vector<memory_item> items;
  bytes peak;  ///< sum of the items
  bytes usable;
  bytes offloaded = {}, offload_room = {};  ///< data of this GPU in CPU memory, and the room for it
  bool fits() const { return peak <= usable && offloaded <= offload_room; }
};

}  // namespace nvlsim
