#include <algorithm>

#include "compute/smooth.hpp"

namespace nvlsim {
namespace {

// Of L2, what a cache may take that is found there again at the next launch of a benchmark.
constexpr double resident_share = 0.75;  // [docs/models-and-assumptions.md#decode-attention]
constexpr double wide_tile = 64;         // query heads that one item of absorbed MLA computes, filled up

}  // namespace

// [docs/models-and-assumptions.md#decode-attention]
kernel_cost decode_attention_cost(const gpu_spec& gpu, const decode_params& p, const decode_shape& s) {
  if (!(s.batch > 0 && s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.context >= 0)) return {};
  const double items = s.batch * s.kv_heads;
  const double parts = std::clamp(gpu.sm_count / items, 1.0, std::max(1.0, s.context / p.chunk));
  const double combine = p.split_time.base() * std::log2(parts);
  const double issue = std::max(1.0, items * parts / gpu.sm_count) * p.item_time.base();
  const double cache = 2 * items * s.context * s.head_dim * s.kv_element_bytes;
  const double moved = cache + 2 * 2 * s.batch * s.heads * s.head_dim;  // query and output in 16 bit
  const bool in_l2 = s.repeated && cache < resident_share * gpu.l2.base();
  const double read = in_l2 ? moved - cache + cache / p.l2_speedup : moved;
  const double memory = read / (gpu.hbm_bandwidth.base() * p.hbm_share);
  const double time = p.launch.base() + combine + compute::smooth_max(issue, memory);
  return {.time = seconds::from_base(time),
          .work = flops::from_base(4 * s.batch * s.heads * s.head_dim * s.context),
          .moved = bytes::from_base(moved),
          .limit = compute::limit_of(p.launch.base(), issue + combine, memory, time)};
}

// [docs/kernels.md#latent-attention]
kernel_cost mla_decode_cost(const gpu_spec& gpu, const mla_decode_params& p, const mla_decode_shape& s) {
  if (!(s.batch > 0 && s.heads > 0 && s.latent_dim > 0 && s.context >= 0)) return {};
  const double items = s.batch * std::ceil(s.heads / (s.heads < wide_tile ? p.narrow_tile : wide_tile));
  const double parts = std::clamp(gpu.sm_count / items, 1.0, std::max(1.0, s.context / p.chunk));
  const double combine = p.split_time.base() * std::log2(parts);
  const double dims = s.latent_dim + s.value_dim;
  const double key_time = 2 * dims * wide_tile * gpu.sm_count / p.tensor_rate.base();  // of an item on one SM
  const double work =
      std::max(1.0, items * parts / gpu.sm_count) * (p.item_time.base() + s.context / parts * key_time);
  const double moved = s.batch * s.context * s.latent_dim * s.kv_element_bytes + 2 * s.batch * s.heads * dims;
  const double memory = moved / (gpu.hbm_bandwidth.base() * p.hbm_share);
  const double time = p.launch.base() + combine + compute::smooth_max(work, memory);
  return {.time = seconds::from_base(time),
          .work = flops::from_base(2 * dims * s.batch * s.heads * s.context),
          .moved = bytes::from_base(moved),
          .limit = compute::limit_of(p.launch.base(), work + combine, memory, time)};
}

}  // namespace nvlsim
