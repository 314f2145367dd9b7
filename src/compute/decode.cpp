#include <algorithm>

#include "compute/smooth.hpp"

namespace nvlsim {
namespace {

constexpr double wide_tile = 64;   // query heads per item of absorbed MLA, padded
constexpr double free_keys = 128;  // of an item of absorbed MLA: the first block, which its item_time includes
constexpr double decode_rounding =
    0.3;  // of the last round of items [docs/models-and-assumptions.md#decode-attention]
constexpr double mla_rounding = 1;
constexpr double key_elements = 128;  // at which ungrouped_decode_params::key_time was measured

double parts_of(double items, double context, double chunk, int sm_count) {
  return std::clamp(sm_count / items, 1.0, std::max(1.0, context / chunk));
}

/// Times of the items of one decode step, without the memory time that they share.
struct items_time {
  double combine, issue;
};

kernel_cost decode_cost(const gpu_spec& gpu, const decode_params& p, const decode_shape& s, const items_time& t) {
  const double cache = 2 * s.batch * s.kv_heads * s.context * s.head_dim * s.kv_element_bytes;
  const double moved = cache + 2 * 2 * s.batch * s.heads * s.head_dim;  // query and output in 16 bit
  const bool in_l2 = s.repeated && cache < compute::resident_share * gpu.l2.base();
  const double read = in_l2 ? moved - cache + cache / p.l2_speedup : moved;
  const double memory = read / (gpu.hbm_bandwidth.base() * p.hbm_share);
  const double time = p.launch.base() + t.combine + compute::smooth_max(t.issue, memory);
  return {.time = seconds::from_base(time),
          .flop = flops::from_base(4 * s.batch * s.heads * s.head_dim * s.context),
          .moved = bytes::from_base(moved),
          .limit = compute::limit_of(p.launch.base(), t.issue + t.combine, memory, time),
          .launch = p.launch};
}

bool any(const decode_shape& s) {
  return s.batch > 0 && s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.context >= 0;
}

double combine_time(const decode_params& p, double parts) {
  return p.split_time.base() * std::log2(parts) + p.part_time.base() * (parts - 1);
}

}  // namespace

// [docs/models-and-assumptions.md#decode-attention]
kernel_cost decode_attention_cost(const gpu_spec& gpu, const decode_params& p, const decode_shape& s) {
  if (!any(s)) return {};
  const double items = s.batch * s.kv_heads;
  const double parts = parts_of(items, s.context, p.chunk, gpu.sm_count);
  double item = p.item_time.base() + p.head_time.base() * s.heads / s.kv_heads;
  if (p.part_rate) item += 2 * s.context / parts * s.head_dim * s.kv_element_bytes / p.part_rate->base();
  const double issue = compute::rounds(items * parts / gpu.sm_count, decode_rounding) * item;
  return decode_cost(gpu, p, s, {combine_time(p, parts), issue});
}

kernel_cost ungrouped_decode_cost(const gpu_spec& gpu, const decode_params& p, const ungrouped_decode_params& u,
                                  const decode_shape& s) {
  if (!any(s)) return {};
  const double items = s.batch * s.heads;
  const double parts = parts_of(items, s.context, u.chunk, gpu.sm_count);
  const double item = u.item_time.base() + u.key_time.base() * s.context / parts * s.head_dim / key_elements;
  const double issue = compute::rounds(items * parts / gpu.sm_count, decode_rounding) * item;
  return decode_cost(gpu, p, s, {combine_time(p, parts), issue});
}

kernel_cost decode_attention_cost(const gpu_spec& gpu, const kernel_profile& k, const decode_shape& s) {
  const decode_params& p = s.kv_element_bytes < 2 && k.decode_fp8 ? *k.decode_fp8 : k.decode;
  const auto it = k.single_decode.find(s.kv_element_bytes < 2 ? precision::fp8 : precision::bf16);
  const decode_params& single = it == k.single_decode.end() ? p : it->second;
  if (k.ungrouped_decode && s.heads > k.ungrouped_decode->beyond * s.kv_heads)
    return ungrouped_decode_cost(gpu, single, *k.ungrouped_decode, s);
  return decode_attention_cost(gpu, s.heads <= s.kv_heads ? single : p, s);
}

// [docs/kernels.md#latent-attention]
kernel_cost mla_decode_cost(const gpu_spec& gpu, const mla_decode_params& p, const mla_decode_shape& s) {
  if (!(s.batch > 0 && s.heads > 0 && s.latent_dim > 0 && s.context >= 0)) return {};
  const double items = s.batch * std::ceil(s.heads / (s.heads < wide_tile ? p.narrow_tile.read() : wide_tile));
  const double parts = parts_of(items, s.context, p.chunk, gpu.sm_count);
  const double combine = p.split_time.base() * std::log2(parts) + p.part_time.base() * (parts - 1);
  const double dims = s.latent_dim + s.value_dim;
  const double key_time = 2 * dims * wide_tile * gpu.sm_count / p.tensor_rate.base();  // of an item on one SM
  const double rounds = compute::rounds(items * parts / gpu.sm_count, mla_rounding);
  const double fixed = p.launch.base() + combine + rounds * p.item_time.base();
  const double arithmetic = rounds * std::max(0.0, s.context / parts - free_keys) * key_time;
  const double moved = s.batch * s.context * s.latent_dim * s.kv_element_bytes + 2 * s.batch * s.heads * dims;
  const double memory = moved / (gpu.hbm_bandwidth.base() * p.hbm_share);
  const double time = fixed + compute::smooth_max(arithmetic, memory);
  return {.time = seconds::from_base(time),
          .flop = flops::from_base(2 * dims * s.batch * s.heads * s.context),
          .moved = bytes::from_base(moved),
          .limit = compute::limit_of(p.launch.base(), fixed - p.launch.base() + arithmetic, memory, time),
          .launch = p.launch};
}

}  // namespace nvlsim
