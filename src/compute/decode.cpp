#include <algorithm>

#include "compute/smooth.hpp"

namespace nvlsim {

// [docs/models-and-assumptions.md#decode-attention]
kernel_cost decode_attention_cost(const gpu_spec& gpu, const decode_params& p, const decode_shape& s) {
  if (!(s.batch > 0 && s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.context >= 0)) return {};
  const double items = s.batch * s.kv_heads;
  const double parts = std::clamp(gpu.sm_count / items, 1.0, std::max(1.0, s.context / p.chunk));
  const double combine = p.split_time.base() * std::log2(parts);
  const double issue = std::max(1.0, items * parts / gpu.sm_count) * p.item_time.base();
  const double cache = 2 * items * s.context * s.head_dim * s.kv_element_bytes;
  const double moved = cache + 2 * 2 * s.batch * s.heads * s.head_dim;  // query and output in 16 bit
  const double memory = moved / (gpu.hbm_bandwidth.base() * p.hbm_share);
  const double time = p.launch.base() + combine + compute::smooth_max(issue, memory);
  return {.time = seconds::from_base(time),
          .work = flops::from_base(4 * s.batch * s.heads * s.head_dim * s.context),
          .moved = bytes::from_base(moved),
          .limit = compute::limit_of(p.launch.base(), issue + combine, memory, time)};
}

}  // namespace nvlsim
