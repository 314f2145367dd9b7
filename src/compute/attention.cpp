#include "compute/smooth.hpp"

namespace nvlsim {
namespace {

// A direction of attention relative to the forward pass.
struct direction {
  double flops;  // over those of the forward pass
  double rate;   // over that of the forward pass
  double io;     // bytes over those of the forward pass
  // Bytes of an attention kernel alone: for each element of the keys' width of a query head or KV head, and of the
  // values' width.
  double head_qk, head_v, kv_qk, kv_v;
};

/// Bytes that an attention kernel alone moves. Operands are in 8 or 16 bits, the output and gradients in 16 bits.
double own_bytes(const attention_shape& s, direction d) {
  const double operand = s.fp8 ? 1 : 2;
  const double head = s.heads * (d.head_qk * s.qk_dim + d.head_v * s.v_dim),
               kv = s.kv_heads * (d.kv_qk * s.qk_dim + d.kv_v * s.v_dim);
  const double read = s.heads * s.qk_dim + s.kv_heads * (s.qk_dim + s.v_dim);
  return s.batch * s.queries * (operand * read + head + kv);
}

// The time of `pairs` scores when every block of query rows is padded to `item_rows`.
// [docs/models-and-assumptions.md#attention]
kernel_cost cost(const gpu_spec& gpu, const attention_params& p, const attention_shape& s, direction d) {
  if (!(s.batch > 0 && s.heads > 0 && s.queries > 0 && s.pairs > 0)) return {};
  const double dims = s.qk_dim + s.v_dim;
  const double rate = p.tensor_rate.base() * d.rate * (s.fp8 ? p.fp8_speedup.read() : 1);
  const double pair_time =
      compute::smooth_max(d.flops * 2 * dims / rate, 1 / (p.exponential_share * gpu.exponentials.base()));
  const double items = std::ceil(s.queries / p.item_rows);
  const double rows = items * p.item_rows;
  const double keys = s.pairs / s.queries;  // per query, on average
  const double tiled_pairs = rows * (keys + (rows - s.queries) / 2 + p.item_rows / 2);
  const double longest_item = p.item_rows * (keys + rows - s.queries / 2);
  const double item_time = p.item_time.base();
  const double all = s.batch * s.heads * (tiled_pairs * pair_time + items * item_time / gpu.sm_count);
  const double critical = longest_item * pair_time * gpu.sm_count + item_time;
  const double work_time = compute::smooth_max(all + p.tail_share * critical, critical);
  const double moved =
      s.alone ? own_bytes(s, d) : d.io * p.io_passes * 2 * s.batch * s.queries * (s.heads + s.kv_heads) * dims;
  const double io_time = moved / (s.alone ? gpu.hbm_stream : gpu.hbm_bandwidth).base();
  const double time = p.launch.base() + (s.alone ? compute::smooth_max(work_time, io_time) : work_time + io_time);
  return {.time = seconds::from_base(time),
          .flop = flops::from_base(d.flops * 2 * dims * s.batch * s.heads * s.pairs),
          .moved = bytes::from_base(moved),
          .limit = compute::limit_of(p.launch.base(), work_time, io_time, time),
          .launch = p.launch,
          .activity = p.power_share * work_time / time};
}

}  // namespace

kernel_cost attention_forward_cost(const gpu_spec& gpu, const attention_params& p, const attention_shape& s) {
  return cost(gpu, p, s, {.flops = 1, .rate = 1, .io = 1, .head_qk = 0, .head_v = 2, .kv_qk = 0, .kv_v = 0});
}

kernel_cost attention_forward_cost(const gpu_spec& gpu, const kernel_profile& k, const attention_shape& s) {
  return attention_forward_cost(gpu, s.fp8 && k.attention_fp8 ? *k.attention_fp8 : k.attention, s);
}

// Five products instead of two. Reads Q, K, V, the output and its gradient; writes three gradients. Alone, it
// reads output and gradient twice (their row sums come first), and adds up the gradient of the queries in FP32,
// which is written, read and written in 16 bits.
kernel_cost attention_backward_cost(const gpu_spec& gpu, const attention_params& p, const attention_shape& s) {
  return cost(gpu, p, s,
              {.flops = 2.5,
               .rate = p.backward_efficiency,
               .io = 2,
               .head_qk = 4 + 4 + 2,
               .head_v = 2 * (2 + 2),
               .kv_qk = 2,
               .kv_v = 2});
}

}  // namespace nvlsim
