// GPU memory of a workload, with a reason for each item.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct memory_item {
  std::string name;    ///< "weights", "gradients", "optimizer", "activations", "kv_cache", "workspace",
                       ///< "cuda_graphs", "reserve", "group_reserve"
  bytes size;          ///< on one GPU
  std::string reason;  ///< how it is computed: "2 B x 6.4 G parameters / TP 2"
  std::optional<std::int64_t> tokens = {};  ///< that a KV cache holds, in layers that keep every token
};

/// Error of the memory peak of a training step, relative, over published peaks and layouts that were not used to
/// determine a coefficient: 90 % are within it. [docs/accuracy.md#memory]
inline constexpr double training_memory_error = 0.08;

/// Memory of the fullest GPU.
struct memory_report {
  std::string where;  ///< "stage 0", "each GPU"
  std::vector<memory_item> items;
  bytes peak;       ///< sum of the items
  bytes allocated;  ///< without what the allocator of the framework does not count, in training
  bytes usable;
  bytes offloaded = {}, offload_room = {};  ///< data of this GPU in CPU memory, and the room for it
  double error = 0;                         ///< relative, of the peak; 0: not known
  bool fits() const { return peak <= usable && offloaded <= offload_room; }
  /// Whether the peak is nearer to the usable memory than the error of the estimate.
  bool tight() const {
    return offloaded <= offload_room && peak <= usable * (1 + error) && peak >= usable * (1 - error) && error > 0;
  }
  /// Whether it does not fit even if the estimate is too high by its error.
  bool refused() const { return !fits() && !tight(); }
};

}  // namespace nvlsim
