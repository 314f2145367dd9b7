// Decode attention with a latent cache, and the benchmark conditions of cached tensors.
#include <catch2/catch.hpp>

#include "unit/compute/support.hpp"

namespace nvlsim {
namespace {

const mla_decode_params& latent(precision cache) { return test::blackwell().mla_decode.at(cache); }

TEST_CASE("Latent decode reads each sequence's cache once for all heads") {
  const mla_decode_shape s{.batch = 128, .context = 8192, .heads = 128, .kv_element_bytes = 1};
  const kernel_cost c = mla_decode_cost(test::gb200(), latent(precision::fp8), s);
  CHECK(c.moved.base() == Approx(128 * 8192.0 * 576 + 2 * 128 * 128 * 1088.0));
  CHECK(c.flop.base() == Approx(2 * 1088.0 * 128 * 128 * 8192));
  CHECK(c.time.base() > c.moved.base() / test::gb200().hbm_bandwidth.base());
}

TEST_CASE("Latent decode grows with context and handles none") {
  double before = 0;
  for (double context = 1; context < 1e6; context *= 4) {
    const kernel_cost c =
        mla_decode_cost(test::gb200(), latent(precision::bf16), {.batch = 256, .context = context, .heads = 128});
    CHECK(c.time.base() >= before);
    before = c.time.base();
  }
  CHECK(mla_decode_cost(test::gb200(), latent(precision::bf16), {}).time.base() == 0);
}

TEST_CASE("Latent decode pays each round of items in full, beside the memory they share") {
  const mla_decode_params& p = latent(precision::bf16);
  const double sm = test::gb200().sm_count;
  const auto time = [&](double batch) {  // 64 heads: an item a sequence; 64 tokens: no more than the first block
    return mla_decode_cost(test::gb200(), p, {.batch = batch, .context = 64, .heads = 64}).time.base();
  };
  CHECK(time(sm + 1) - time(sm) > 0.99 * p.item_time.base());
  CHECK(time(2 * sm + 1) - time(2 * sm) > 0.99 * p.item_time.base());
  CHECK(time(sm + 2) - time(sm + 1) < 0.1 * p.item_time.base());
}

TEST_CASE("Only a benchmark finds its cache in L2") {
  decode_shape s{.batch = 4, .context = 4096, .heads = 64, .kv_heads = 8, .head_dim = 128};
  const decode_params& p = test::blackwell().decode;
  const seconds cold = decode_attention_cost(test::gb200(), p, s).time;
  s.repeated = true;
  CHECK(decode_attention_cost(test::gb200(), p, s).time < cold);
  s.batch = 64;  // 1 GiB does not fit
  const seconds large = decode_attention_cost(test::gb200(), p, s).time;
  s.repeated = false;
  CHECK(decode_attention_cost(test::gb200(), p, s).time == large);
}

TEST_CASE("Weights in another format than the operands move their own bytes") {
  gemm_shape s{.m = 16, .n = 8192, .k = 8192};
  gemm_params p = test::blackwell().gemm.at(precision::bf16);
  p.split_time.reset();  // else the choice of split may change too
  const double wide = gemm_cost(test::gb200(), p, precision::bf16, s).moved.base();
  s.weight_element_bytes = 0.5;
  CHECK(wide - gemm_cost(test::gb200(), p, precision::bf16, s).moved.base() == Approx(1.5 * 8192 * 8192));
}

}  // namespace
}  // namespace nvlsim
