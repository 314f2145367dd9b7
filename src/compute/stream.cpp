#include "compute/smooth.hpp"

namespace nvlsim {

// [docs/models-and-assumptions.md#memory-bound]
kernel_cost stream_cost(const gpu_spec& gpu, const stream_params& p, bytes moved, bool repeated) {
  if (!(moved.base() > 0)) return {};
  const bool in_l2 = repeated && moved < gpu.l2 * 0.5;
  const seconds memory = moved / (gpu.hbm_stream * (p.hbm_share * (in_l2 ? p.l2_speedup : 1)));
  return {.time = p.launch + memory,
          .work = {},
          .moved = moved,
          .limit = p.launch >= memory ? bound::launch : bound::memory};
}

}  // namespace nvlsim
