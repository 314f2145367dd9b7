#include "compute/smooth.hpp"

namespace nvlsim {

// [docs/models-and-assumptions.md#memory-bound]
kernel_cost stream_cost(const gpu_spec& gpu, const stream_params& p, bytes moved) {
  if (!(moved.base() > 0)) return {};
  const seconds memory = moved / (gpu.hbm_stream * p.hbm_share);
  return {.time = p.launch + memory,
          .work = {},
          .moved = moved,
          .limit = p.launch >= memory ? bound::launch : bound::memory};
}

}  // namespace nvlsim
