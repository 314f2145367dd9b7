// Attention that writes its scores to memory. [docs/models-and-assumptions.md#unfused-attention]
#include <initializer_list>

#include "nvlsim/compute/compute.hpp"

namespace nvlsim {
namespace {

constexpr double score_bytes = 2;

/// Kernels one after another; the longest says what limits them.
kernel_cost in_turn(std::initializer_list<kernel_cost> kernels) {
  kernel_cost out;
  seconds longest;
  double active = 0;
  for (const kernel_cost& k : kernels) {
    out.time += k.time;
    out.flop += k.flop;
    out.moved += k.moved;
    out.launch += k.launch;
    active += k.activity * k.time.base();
    if (k.time < longest) continue;
    longest = k.time;
    out.limit = k.limit;
  }
  if (out.time > seconds{}) out.activity = active / out.time.base();
  return out;
}

struct products {
  const gpu_spec& gpu;
  const gemm_params& params;
  const attention_shape& s;
  /// Every query with every key: masked scores are computed, too.
  kernel_cost of(double n, double k) const {
    return gemm_cost(
        gpu, params, precision::bf16,
        {.m = s.queries, .n = n, .k = k, .groups = s.batch * s.heads, .output_element_bytes = score_bytes});
  }
};

kernel_cost passes_over_scores(const gpu_spec& gpu, const stream_params& p, const attention_shape& s,
                               double passes) {
  const double scores = s.batch * s.heads * s.queries * s.queries;
  return stream_cost(gpu, p, bytes::from_base(passes * score_bytes * scores));
}

}  // namespace

kernel_cost unfused_attention_forward_cost(const gpu_spec& gpu, const kernel_profile& k, const gemm_params& g,
                                           const attention_shape& s, double score_passes) {
  const products p{gpu, g, s};
  return in_turn(
      {p.of(s.queries, s.qk_dim), p.of(s.v_dim, s.queries), passes_over_scores(gpu, k.stream, s, score_passes)});
}

// Gradients of the values and of the probabilities, then of the queries and the keys.
kernel_cost unfused_attention_backward_cost(const gpu_spec& gpu, const kernel_profile& k, const gemm_params& g,
                                            const attention_shape& s, double score_passes) {
  const products p{gpu, g, s};
  return in_turn({p.of(s.v_dim, s.queries), p.of(s.queries, s.v_dim), p.of(s.qk_dim, s.queries),
                  p.of(s.qk_dim, s.queries), passes_over_scores(gpu, k.stream, s, score_passes + 1)});
}

}  // namespace nvlsim
