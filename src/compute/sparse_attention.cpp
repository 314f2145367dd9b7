#include <algorithm>

#include "compute/smooth.hpp"

namespace nvlsim {
namespace {

constexpr double row_tile = 64;  // query heads of one token per matrix instruction

kernel_cost limited_by_resource(const gpu_spec& gpu, const attention_params& p, double flop, double compute,
                                double moved) {
  const double memory = moved / gpu.hbm_stream.base();
  const double time = p.launch.base() + compute::smooth_max(compute, memory);
  return {.time = seconds::from_base(time),
          .flop = flops::from_base(flop),
          .moved = bytes::from_base(moved),
          .limit = compute::limit_of(p.launch.base(), compute, memory, time),
          .launch = p.launch,
          .activity = p.power_share * std::min(compute / time, 1.0)};
}

double rate_of(const attention_params& p, bool fp8) {
  return p.tensor_rate.base() * (fp8 ? p.fp8_speedup.read() : 1);
}

/// One direction: its FLOPs and rate over those of the forward pass, and the bytes it moves.
struct pass {
  double flop_factor = 1, rate_factor = 1, moved = 0;
};
kernel_cost attend(const gpu_spec& gpu, const attention_params& p, const sparse_attention_shape& s,
                   const pass& w) {
  if (!(s.tokens > 0 && s.heads > 0 && s.keys > 0)) return {};
  const double rows = std::ceil(s.heads / row_tile) * row_tile;
  const double pair_flops = w.flop_factor * 2 * (s.qk_dim + s.v_dim);
  const double pair_time = compute::smooth_max(pair_flops / (rate_of(p, s.fp8) * w.rate_factor),
                                               1 / (p.exponential_share * gpu.exponentials.base()));
  const double pairs = s.tokens * s.keys;
  return limited_by_resource(gpu, p, pairs * s.heads * pair_flops, pairs * rows * pair_time, w.moved);
}

}  // namespace

// Keys of neighbouring queries overlap and stay in L2. HBM carries only queries, outputs and one vector per token.
kernel_cost sparse_attention_forward_cost(const gpu_spec& gpu, const attention_params& p,
                                          const sparse_attention_shape& s) {
  return attend(gpu, p, s, {1, 1, p.io_passes * 2 * s.tokens * (s.heads * (s.qk_dim + s.v_dim) + s.qk_dim)});
}

kernel_cost sparse_attention_backward_cost(const gpu_spec& gpu, const attention_params& p,
                                           const sparse_attention_shape& s) {
  const double vectors = 2 * p.io_passes * 2 * s.tokens * (s.heads * (s.qk_dim + s.v_dim) + s.qk_dim);
  const double scattered = 4 * s.tokens * s.keys * s.qk_dim;  // FP32 gradients of keys, which are also the values
  return attend(gpu, p, s, {2.5, p.backward_efficiency, vectors + scattered});
}

// Products of all heads with all scored keys. The scores are written once, and the selection reads them twice.
kernel_cost indexer_forward_cost(const gpu_spec& gpu, const attention_params& p, const indexer_shape& s) {
  if (!(s.tokens > 0 && s.heads > 0 && s.scored > 0)) return {};
  const double flop = 2 * s.tokens * s.scored * s.heads * s.dim;
  const double moved = s.tokens * (3 * 4 * s.scored + 4 * s.chosen + 2 * s.heads * s.dim);
  return limited_by_resource(gpu, p, flop, flop / rate_of(p, s.fp8), moved);
}

// The loss of the indexer compares scores with attention on the selected keys: two gradients, and that attention.
kernel_cost indexer_backward_cost(const gpu_spec& gpu, const attention_params& p, const indexer_shape& s) {
  if (!(s.tokens > 0 && s.heads > 0 && s.chosen > 0)) return {};
  const double flop = 2 * 2 * s.tokens * s.chosen * s.heads * s.dim;
  const double moved = s.tokens * (3 * 4 * s.chosen + 4 * s.chosen * s.dim + 2 * 2 * s.heads * s.dim);
  return limited_by_resource(gpu, p, flop, flop / (rate_of(p, s.fp8) * p.backward_efficiency), moved);
}

}  // namespace nvlsim
