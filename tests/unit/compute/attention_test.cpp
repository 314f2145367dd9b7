#include <catch2/catch.hpp>
#include <cmath>

#include "unit/compute/support.hpp"

namespace nvlsim {
namespace {

using test::blackwell;
using test::gb200;

attention_shape causal(double batch, double length, double heads = 64) {
  return {.batch = batch,
          .heads = heads,
          .kv_heads = 8,
          .qk_dim = 128,
          .v_dim = 128,
          .queries = length,
          .pairs = length * length / 2};
}
kernel_cost forward(const attention_shape& s) { return attention_forward_cost(gb200(), blackwell().attention, s); }
kernel_cost backward(const attention_shape& s) {
  return attention_backward_cost(gb200(), blackwell().attention, s);
}
kernel_cost decode(const decode_shape& s) { return decode_attention_cost(gb200(), blackwell().decode, s); }

TEST_CASE("Attention equals the block formula for causal sequences") {
  for (const double length : {1.0, 100.0, 128.0, 129.0, 1000.0, 8192.0}) {
    const double blocks = std::ceil(length / 128), batch = 3, heads = 64, sm = gb200().sm_count;
    const attention_params& p = blackwell().attention;
    const double rate = p.tensor_rate.base(), exponentials = p.exponential_share * gb200().exponentials.base();
    const double pair = std::cbrt(std::pow(512 / rate, 3) + std::pow(1 / exponentials, 3));
    const double item = p.item_time.base();
    const double all = batch * heads * (blocks * (blocks + 1) / 2 * 128 * 128 * pair + blocks * item / sm);
    const double longest = blocks * 128 * 128 * pair * sm + item;
    const double io = p.io_passes * 2 * batch * length * (64 + 8) * 256 / gb200().hbm_bandwidth.base();
    const double work = all + p.tail_share * longest;
    const double expected = p.launch.base() + std::cbrt(std::pow(work, 3) + std::pow(longest, 3)) + io;
    CHECK(forward(causal(3, length)).time.base() == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("Attention time grows with batch, length and heads, and stays above its rate") {
  double last = 0;
  for (const double length : {1.0, 64.0, 128.0, 200.0, 1024.0, 1025.0, 32768.0}) {
    const kernel_cost c = forward(causal(4, length));
    CHECK(c.time.base() > last);
    CHECK(c.time > blackwell().attention.launch + c.flop / blackwell().attention.tensor_rate);
    CHECK(forward(causal(5, length)).time > c.time);
    CHECK(forward(causal(4, length, 65)).time > c.time);
    last = c.time.base();
  }
}

TEST_CASE("Attention that is not fused is its GEMMs and its passes over the scores") {
  const kernel_profile& k = blackwell();
  const gemm_params& g = k.gemm.at(precision::bf16);
  const auto gemm = [&](double m, double n, double depth) {
    return gemm_cost(gb200(), g, precision::bf16, {.m = m, .n = n, .k = depth, .groups = 4 * 64.0}).time.base();
  };
  const auto passes = [&](double count, double length) {
    return stream_cost(gb200(), k.stream, bytes::from_base(count * 2 * 4 * 64 * length * length)).time.base();
  };
  for (const double length : {128.0, 2048.0, 8192.0}) {
    const attention_shape s = causal(4, length);
    const kernel_cost ahead = unfused_attention_forward_cost(gb200(), k, g, s, 4.5);
    const kernel_cost back = unfused_attention_backward_cost(gb200(), k, g, s, 4.5);
    CHECK(ahead.time.base() ==
          Approx(gemm(length, length, 128) + gemm(length, 128, length) + passes(4.5, length)).epsilon(1e-12));
    CHECK(back.time.base() ==
          Approx(gemm(length, length, 128) + 3 * gemm(length, 128, length) + passes(5.5, length)).epsilon(1e-12));
    CHECK(unfused_attention_forward_cost(gb200(), k, g, s, 2).time < ahead.time);
    // It computes masked pairs, too, and moves what fused kernels keep on the SM.
    CHECK(ahead.flop.base() == Approx(2 * forward(s).flop.base()));
    CHECK(ahead.moved > forward(s).moved);
  }
  const attention_shape s = causal(4, 8192);
  CHECK(unfused_attention_forward_cost(gb200(), k, g, s, 4.5).time > 2.0 * forward(s).time);
}

TEST_CASE("Attention of chunks costs the whole plus what they repeat") {
  const double length = 32768, chunk = 8192;
  seconds sum;
  for (double done = 0; done < length; done += chunk) {
    attention_shape s = causal(1, chunk);
    s.pairs = chunk * (done + chunk / 2);
    sum += forward(s).time;
  }
  const seconds whole = forward(causal(1, length)).time;
  CHECK(sum > whole);
  CHECK(sum < 1.15 * whole);
}

TEST_CASE("FP8 attention speeds up the products and not the exponentials") {
  attention_shape s = causal(1, 32768);
  const seconds wide = forward(s).time;
  s.fp8 = true;
  CHECK(forward(s).time < wide);
  CHECK(blackwell().attention.fp8_speedup * forward(s).time > wide);
}

TEST_CASE("Backward attention does two and a half times the arithmetic at a lower rate") {
  const attention_shape s = causal(2, 16384);
  CHECK(backward(s).flop.base() == 2.5 * forward(s).flop.base());
  CHECK(backward(s).time > 2.5 * forward(s).time);
  CHECK(backward(s).time < 2.5 / blackwell().attention.backward_efficiency * 1.1 * forward(s).time);
  CHECK(backward(s).limit == kernel_resource::compute);
}

TEST_CASE("Decode attention reads the cache at its share of HBM and never falls below the launch") {
  const kernel_cost large = decode({.batch = 256, .context = 16384, .heads = 64, .kv_heads = 8, .head_dim = 128});
  CHECK(large.limit == kernel_resource::memory);
  CHECK(large.moved.base() == 2 * 256.0 * 16384 * 8 * 128 * 2 + 4 * 256.0 * 64 * 128);
  const bandwidth rate = large.moved / large.time;
  CHECK(rate < blackwell().decode.hbm_share * gb200().hbm_bandwidth);
  CHECK(rate > 0.98 * blackwell().decode.hbm_share * gb200().hbm_bandwidth);
  const kernel_cost small = decode({.batch = 1, .context = 128, .heads = 8, .kv_heads = 1, .head_dim = 128});
  CHECK(small.limit == kernel_resource::launch);
  CHECK(small.time > blackwell().decode.launch);
}

TEST_CASE("Decode attention never takes less time for more context, sequences or wider caches") {
  double by_context = 0, by_batch = 0;
  for (const double x : {1.0, 10.0, 600.0, 700.0, 3000.0, 40000.0}) {
    decode_shape s{.batch = 4, .context = x, .heads = 32, .kv_heads = 8, .head_dim = 128};
    const double t = decode(s).time.base();
    CHECK(t >= by_context);
    by_context = t;
    s.kv_element_bytes = 1;
    CHECK(decode(s).time.base() <= t);
    // One long sequence is cut over all SMs, and each doubling of the batch saves a combining step.
    const double b =
        decode({.batch = x, .context = 2048, .heads = 32, .kv_heads = 8, .head_dim = 128}).time.base();
    const decode_params& p = blackwell().decode;
    CHECK(b + 8 * p.split_time.base() + gb200().sm_count * p.part_time.base() >= by_batch);
    by_batch = b;
  }
}

TEST_CASE("Decode attention falls to a kernel for each query head beyond what the grouped one takes") {
  const kernel_profile& k = blackwell();
  decode_shape s{.batch = 256, .context = 64, .heads = 32, .kv_heads = 1, .head_dim = 128, .kv_element_bytes = 1};
  CHECK(decode_attention_cost(gb200(), k, s).time == decode_attention_cost(gb200(), *k.decode_fp8, s).time);
  s.heads = 64;  // 256 x 64 items of 148 SMs, each at least the kernel's item time
  const double rounds = 256 * 64.0 / gb200().sm_count;
  CHECK(decode_attention_cost(gb200(), k, s).time.base() > rounds * k.ungrouped_decode->item_time.base());
  CHECK(decode_attention_cost(gb200(), k, s).moved.base() == Approx(2 * 256 * 64 * 128.0 + 4 * 256 * 64 * 128.0));
}

TEST_CASE("The last block of a long sequence keeps other SMs waiting") {
  attention_params p = blackwell().attention;
  const attention_shape few = causal(1, 16384, 2), many = causal(16, 16384, 64);
  const auto tail = [&](const attention_shape& s) {
    p.tail_share = 0;
    const double without = attention_forward_cost(gb200(), p, s).time.base();
    p.tail_share = 1;
    return attention_forward_cost(gb200(), p, s).time.base() / without;
  };
  CHECK(tail(few) > 1.3);
  CHECK(tail(many) < 1.01);
}

TEST_CASE("Attention of nothing costs nothing") {
  CHECK(forward(causal(0, 128)).time.base() == 0);
  CHECK(forward(causal(1, 0)).time.base() == 0);
  CHECK(backward(causal(1, 128, 0)).time.base() == 0);
  CHECK(decode({}).time.base() == 0);
  CHECK(std::isfinite(decode({.batch = 1, .context = 0, .heads = 8, .kv_heads = 1, .head_dim = 64}).time.base()));
}

TEST_CASE("Attention alone moves its operands and output behind its products") {
  const attention_params p = blackwell().attention;
  attention_shape s{.batch = 2,
                    .heads = 128,
                    .kv_heads = 128,
                    .qk_dim = 192,
                    .v_dim = 128,
                    .queries = 4096,
                    .pairs = 4096.0 * 4097 / 2};
  s.alone = true;
  const double q = 128 * 192, v = 128 * 128, tokens = 2 * 4096;
  CHECK(attention_forward_cost(gb200(), p, s).moved.base() == Approx(tokens * 2 * (q + q + v + v)));
  // Q, K, V; twice output and its gradient; the gradient of Q in FP32 and in 16 bits; those of K and V.
  CHECK(attention_backward_cost(gb200(), p, s).moved.base() ==
        Approx(tokens * (2 * (q + q + v) + 8 * v + 10 * q + 2 * (q + v))));
  attention_shape eight = s;
  eight.fp8 = true;  // the output stays in 16 bits
  CHECK(attention_forward_cost(gb200(), p, eight).moved.base() == Approx(tokens * (q + q + v + 2 * v)));
  attention_shape grouped = s;
  grouped.kv_heads = 8;
  CHECK(attention_forward_cost(gb200(), p, grouped).moved < attention_forward_cost(gb200(), p, s).moved);
  attention_shape serving = s;
  serving.alone = false;
  CHECK(attention_forward_cost(gb200(), p, s).time < attention_forward_cost(gb200(), p, serving).time);
}

}  // namespace
}  // namespace nvlsim
