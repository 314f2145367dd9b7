// Scans and sparse attention: what they compute and move, and what bounds them.
#include <catch2/catch.hpp>

#include "nvlsim/compute/compute.hpp"

namespace nvlsim {
namespace {

constexpr double endless = 1e40;

gpu_spec fast_memory() {
  gpu_spec g;
  g.hbm_stream = g.hbm_bandwidth = bandwidth::from_base(endless);
  g.exponentials = rate::from_base(endless);
  g.sm_count = 100;
  return g;
}

constexpr scan_shape mamba = {.tokens = 1000, .heads = 16, .head_dim = 64, .state = 32, .groups = 2, .chunk = 128};
const flop_rate one_tera = flop_rate::from_base(1e12);

TEST_CASE("Scan's arithmetic is that of its products by chunk") {
  const gpu_spec g = fast_memory();
  const double pairs = 64 * 32, inside = 128 * 64, scores = 2 * 128 * 32;
  const kernel_cost forward = scan_forward_cost(g, one_tera, 0, {}, mamba);
  CHECK(forward.flop.base() == Approx(2 * 1000.0 * (16 * (2 * pairs + inside) + scores)));
  CHECK(forward.time.base() == Approx(forward.flop.base() / 1e12));
  const kernel_cost backward = scan_backward_cost(g, one_tera, 0, {}, mamba);
  CHECK(backward.flop.base() == Approx(2 * 1000.0 * (16 * (5 * pairs + 3 * inside) + 3 * scores)));
}

TEST_CASE("Scan's traffic is its vectors, and states once a chunk") {
  gpu_spec g = fast_memory();
  g.hbm_stream = bandwidth::from_base(1e12);
  const kernel_cost c = scan_forward_cost(g, flop_rate::from_base(endless), 0, {}, mamba);
  CHECK(c.moved.base() == Approx(1000.0 * (16 * (6 * 64 + 12 * 64 * 32 / 128.0) + 2 * (8 * 32 + 8 * 128))));
  CHECK(c.time.base() == Approx(c.moved.base() / 1e12));
  CHECK(c.limit == kernel_resource::memory);
  scan_shape longer = mamba;
  longer.chunk = 256;
  CHECK(scan_forward_cost(g, flop_rate::from_base(endless), 0, {}, longer).moved.base() ==
        Approx(1000.0 * (16 * (6 * 64 + 12 * 64 * 32 / 256.0) + 2 * (8 * 32 + 8 * 256))));
}

TEST_CASE("Scan grows with tokens and heads, and costs nothing without them") {
  const gpu_spec g = fast_memory();
  for (const bool delta : {false, true}) {
    scan_shape s = mamba;
    s.delta = delta;
    const double one = scan_forward_cost(g, one_tera, 0, {}, s).time.base();
    s.tokens *= 2;
    CHECK(scan_forward_cost(g, one_tera, 0, {}, s).time.base() == Approx(2 * one));
    s.heads = 0;
    CHECK(scan_forward_cost(g, one_tera, 0, {}, s).time.base() == 0);
    CHECK(scan_backward_cost(g, one_tera, 0, {}, s).time.base() == 0);
  }
}

TEST_CASE("Scans wait for SMs that work on so many words a second, whatever memory and tensor cores could do") {
  gpu_spec g = fast_memory();
  const double words =
      scan_forward_cost(g, one_tera, 0, {}, mamba).moved.base() / 2 + 1000.0 * 16 * 128;  // and exponentials
  const auto time = [&](double per_sm) {
    return scan_forward_cost(g, flop_rate::from_base(endless), per_sm, {}, mamba).time.base();
  };
  CHECK(time(1e9) == Approx(words / (100 * 1e9)));
  g.sm_count = 50;
  CHECK(time(1e9) == Approx(words / (50 * 1e9)));
  CHECK(time(0) < 1e-20);
}

TEST_CASE("Sparse attention pays for the chosen keys alone, whatever the sequence") {
  const gpu_spec g = fast_memory();
  attention_params p;
  p.tensor_rate = one_tera;
  const sparse_attention_shape s{.tokens = 1000, .heads = 128, .keys = 512, .qk_dim = 576, .v_dim = 512};
  const kernel_cost forward = sparse_attention_forward_cost(g, p, s);
  CHECK(forward.flop.base() == Approx(1000.0 * 512 * 128 * 2 * (576 + 512)));
  CHECK(forward.time.base() == Approx(forward.flop.base() / 1e12));
  CHECK(sparse_attention_backward_cost(g, p, s).flop.base() == Approx(2.5 * forward.flop.base()));
  sparse_attention_shape few = s;
  few.heads = 16;  // a matrix instruction takes 64 heads
  CHECK(sparse_attention_forward_cost(g, p, few).time.base() == Approx(forward.time.base() / 2));
}

TEST_CASE("Indexer scores every key and learns from the chosen ones") {
  const gpu_spec g = fast_memory();
  attention_params p;
  p.tensor_rate = one_tera;
  const indexer_shape s{.tokens = 1000, .heads = 64, .dim = 128, .scored = 8192, .chosen = 2048};
  CHECK(indexer_forward_cost(g, p, s).flop.base() == Approx(2.0 * 1000 * 8192 * 64 * 128));
  CHECK(indexer_backward_cost(g, p, s).flop.base() == Approx(4.0 * 1000 * 2048 * 64 * 128));
}

}  // namespace
}  // namespace nvlsim
