#include <algorithm>
#include <array>
#include <span>

#include "compute/smooth.hpp"

namespace nvlsim {
namespace {

/// Cost of one kernel per token: products and exponentials per head; 16-bit vectors per head (of P elements) and
/// per group (of N); bytes per element of the state of a head, once per chunk; bytes per element of the chunk
/// matrix of a group.
struct scan_kernel {
  double state_products;  ///< P x N multiply-adds
  double chunk_products;  ///< Q x P
  double score_products;  ///< Q x N per group (per head under the delta rule)
  double exponentials;    ///< Q
  double head_vectors, group_vectors;
  double state_bytes, chunk_bytes;
};

// Mamba-2: the kernels of state-spaces/mamba, ssd_combined.py, in order.
constexpr std::array<scan_kernel, 4> mamba_forward = {{
    {1, 0, 0, 0, 1, 1, 4, 0},  // chunk_state: states in FP32
    {0, 0, 0, 0, 0, 0, 6, 0},  // state_passing: FP32 in, 16 bit out
    {0, 0, 1, 0, 0, 2, 0, 4},  // bmm_chunk: C B^T in FP32
    {1, 1, 0, 1, 2, 1, 2, 4},  // chunk_scan
}};
constexpr std::array<scan_kernel, 11> mamba_backward = {{
    {1, 0, 0, 0, 1, 1, 4, 0},   // chunk_state again
    {0, 0, 0, 0, 0, 0, 8, 0},   // state_passing again
    {0, 0, 1, 0, 0, 2, 0, 4},   // bmm_chunk again
    {1, 0, 0, 0, 1, 1, 4, 0},   // bwd_dstates
    {0, 0, 0, 0, 0, 0, 12, 0},  // state_passing_bwd
    {1, 1, 0, 1, 3, 1, 2, 4},   // chunk_state_bwd_dx
    {1, 0, 0, 0, 1, 3, 2, 0},   // chunk_state_bwd_db
    {1, 0, 0, 0, 1, 3, 2, 0},   // chunk_scan_bwd_dC
    {0, 1, 0, 1, 2, 0, 0, 4},   // chunk_scan_bwd_dcb
    {0, 0, 2, 0, 0, 6, 0, 8},   // bmm_chunk_bwd, twice
    {0, 1, 0, 1, 2, 0, 0, 4},   // bwd_ddAcs
}};
// The gated delta rule: the chunked kernels of flash-linear-attention. Keys are as wide as the state.
constexpr std::array<scan_kernel, 5> delta_forward = {{
    {0, 0, 1, 1, 0, 1, 0, 4},  // scaled_dot_kkt
    {0, 0, 0, 0, 0, 0, 0, 6},  // solve_tril
    {0, 1, 1, 0, 2, 2, 0, 2},  // recompute_w_u
    {2, 0, 0, 0, 2, 2, 2, 0},  // fwd_h, from chunk to chunk
    {1, 1, 1, 1, 2, 2, 2, 0},  // fwd_o
}};
constexpr std::array<scan_kernel, 6> delta_backward = {{
    {0, 1, 1, 0, 2, 2, 0, 2},  // recompute_w_u again
    {2, 0, 0, 0, 2, 2, 2, 0},  // fwd_h again
    {0, 1, 1, 1, 2, 2, 0, 0},  // bwd_dv_local
    {3, 0, 0, 0, 3, 3, 4, 0},  // bwd_dhu
    {3, 2, 3, 1, 4, 6, 4, 0},  // bwd_dqkwg
    {0, 3, 4, 1, 4, 6, 0, 8},  // prepare_wy_repr_bwd
}};

// Each kernel takes the longest of its arithmetic, its memory traffic and the SM time of its elements. Kernels do
// not overlap.
struct scan_rates {
  flop_rate tensor;
  double words_per_sm = 0;  ///< 16-bit words and exponentials a second; 0: no limit
  const stream_params& stream;
};
kernel_cost cost(const gpu_spec& gpu, const scan_rates& r, const scan_shape& s,
                 std::span<const scan_kernel> kernels) {
  const stream_params& p = r.stream;
  if (!(s.tokens > 0 && s.heads > 0)) return {};
  const double score_heads = s.delta ? s.heads : s.groups;
  const double pairs = s.head_dim * s.state, hbm = gpu.hbm_stream.base() * p.hbm_share;
  kernel_cost out;
  double compute = 0, memory = 0;
  for (const scan_kernel& k : kernels) {
    const double flop = 2 * s.tokens *
                        (s.heads * (k.state_products * pairs + k.chunk_products * s.chunk * s.head_dim) +
                         score_heads * k.score_products * s.chunk * s.state);
    const double exponentials = s.tokens * s.heads * k.exponentials * s.chunk;
    const double moved =
        s.tokens * (s.heads * (2 * k.head_vectors * s.head_dim + k.state_bytes * pairs / s.chunk) +
                    score_heads * (2 * k.group_vectors * s.state + k.chunk_bytes * s.chunk));
    const double busy = flop / r.tensor.base() + exponentials / gpu.exponentials.base(), stream = moved / hbm;
    const double elements = r.words_per_sm > 0 ? (moved / 2 + exponentials) / (r.words_per_sm * gpu.sm_count) : 0;
    out.time += p.launch + seconds::from_base(std::max({busy, stream, elements}));
    out.flop += flops::from_base(flop);
    out.moved += bytes::from_base(moved);
    compute += std::max(busy, elements);
    memory += stream;
  }
  const double launches = p.launch.base() * static_cast<double>(kernels.size());
  out.limit = compute::limit_of(launches, compute, memory, out.time.base());
  out.launch = seconds::from_base(launches);
  return out;
}

}  // namespace

kernel_cost scan_forward_cost(const gpu_spec& gpu, flop_rate tensor_rate, double words_per_sm,
                              const stream_params& p, const scan_shape& s) {
  if (s.delta) return cost(gpu, {tensor_rate, words_per_sm, p}, s, delta_forward);
  return cost(gpu, {tensor_rate, words_per_sm, p}, s, mamba_forward);
}

kernel_cost scan_backward_cost(const gpu_spec& gpu, flop_rate tensor_rate, double words_per_sm,
                               const stream_params& p, const scan_shape& s) {
  if (s.delta) return cost(gpu, {tensor_rate, words_per_sm, p}, s, delta_backward);
  return cost(gpu, {tensor_rate, words_per_sm, p}, s, mamba_backward);
}

}  // namespace nvlsim
