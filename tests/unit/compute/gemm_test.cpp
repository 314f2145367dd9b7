#include <catch2/catch.hpp>
#include <cmath>

#include "unit/compute/support.hpp"

namespace nvlsim {
namespace {

using test::blackwell;
using test::gb200;

kernel_cost cost(precision p, const gemm_shape& s) { return gemm_cost(gb200(), blackwell().gemm.at(p), p, s); }
double time(precision p, const gemm_shape& s) { return cost(p, s).time.base(); }

constexpr precision measured[] = {precision::bf16, precision::fp8, precision::fp8_block, precision::nvfp4};
constexpr double sizes[] = {1, 7, 16, 63, 64, 65, 129, 500, 1024, 1025, 4096, 4100, 20000, 65536};

TEST_CASE("GEMM never takes less time when a side grows") {
  for (const precision p : measured)
    for (const double a : sizes)
      for (const double b : {1.0, 300.0, 8192.0}) {
        double m = 0, n = 0, k = 0, g = 0;
        for (const double x : sizes) {
          const double next_m = time(p, {.m = x, .n = a, .k = b}), next_n = time(p, {.m = a, .n = x, .k = b});
          const double next_k = time(p, {.m = a, .n = b, .k = x});
          const double next_g = time(p, {.m = a, .n = b, .k = 512, .groups = x});
          CAPTURE(name(p), a, b, x);
          constexpr double rounding = 1 - 1e-12;
          REQUIRE(next_m >= m * rounding);
          REQUIRE(next_n >= n * rounding);
          REQUIRE(next_k >= k * rounding);
          REQUIRE(next_g >= g * rounding);
          m = next_m, n = next_n, k = next_k, g = next_g;
        }
      }
}

TEST_CASE("GEMM is never faster than its tensor rate or than HBM") {
  for (const auto& [p, params] : blackwell().gemm)
    for (const double m : sizes)
      for (const double n : sizes)
        for (const double groups : {1.0, 9.0}) {
          const kernel_cost c = cost(p, {.m = m, .n = n, .k = 2048, .groups = groups});
          CAPTURE(name(p), m, n, groups);
          REQUIRE(c.time > params.launch + c.flop / params.tensor_rate);
          REQUIRE(c.time > params.launch + c.moved / gb200().hbm_stream);
        }
}

TEST_CASE("GEMM without a cast costs the same transposed") {
  gemm_params p = blackwell().gemm.at(precision::fp8);
  p.cast_passes = 0;
  for (const double m : sizes)
    for (const double n : sizes) {
      const auto t = [&](double a, double b) {
        return gemm_cost(gb200(), p, precision::fp8, {.m = a, .n = b, .k = 777}).time.base();
      };
      CHECK(t(m, n) == Approx(t(n, m)).epsilon(1e-12));
    }
}

TEST_CASE("Grouped GEMM of large groups costs their sum and of small ones saves launches") {
  const gemm_shape one{.m = 4096, .n = 4096, .k = 4096};
  gemm_shape eight = one;
  eight.groups = 8;
  const double launch = blackwell().gemm.at(precision::bf16).launch.base();
  const double single = time(precision::bf16, one) - launch;
  CHECK(time(precision::bf16, eight) - launch == Approx(8 * single).epsilon(0.05));
  CHECK(cost(precision::bf16, eight).flop.base() == 8 * cost(precision::bf16, one).flop.base());
  CHECK(cost(precision::bf16, eight).moved.base() == 8 * cost(precision::bf16, one).moved.base());

  // 32 experts of 4 tokens fill the SMs that one leaves idle.
  const gemm_shape small{.m = 4, .n = 256, .k = 4096};
  gemm_shape many = small;
  many.groups = 32;
  CHECK(time(precision::nvfp4, many) < 2 * time(precision::nvfp4, small));
}

TEST_CASE("GEMM counts operands, output and casts as HBM traffic") {
  const gemm_shape s{.m = 8192, .n = 4096, .k = 2048};
  CHECK(cost(precision::bf16, s).moved.base() == 2 * (8192.0 + 4096) * 2048 + 2 * 8192.0 * 4096);
  gemm_shape gradient = s;
  gradient.output_element_bytes = 8;
  CHECK((cost(precision::bf16, gradient).moved - cost(precision::bf16, s).moved).base() == 6 * 8192.0 * 4096);

  gemm_params p = blackwell().gemm.at(precision::bf16);
  p.output_bytes = 6;
  const kernel_cost with = gemm_cost(gb200(), p, precision::bf16, s), without = cost(precision::bf16, s);
  CHECK((with.moved - without.moved).base() == 6 * 8192.0 * 4096);
  CHECK((with.time - without.time).base() == Approx(6 * 8192.0 * 4096 / gb200().hbm_stream.base()));

  gemm_params cast = p;
  cast.cast_passes = 2;
  cast.hbm_share = 0.5;
  gemm_params plain = cast;
  plain.cast_passes = 0;
  const auto fp8 = [&](const gemm_params& x) { return gemm_cost(gb200(), x, precision::fp8, s); };
  CHECK((fp8(cast).moved - fp8(plain).moved).base() == 2 * 8192.0 * 2048 * 3);
  CHECK((fp8(cast).time - fp8(plain).time).base() == Approx(2 * 8192.0 * 2048 * 3 / 4e12));
}

TEST_CASE("A cast takes its least time for every row, where there is one") {
  gemm_params p = blackwell().gemm.at(precision::nvfp4);
  p.cast_passes = 1;
  p.cast_row_time = seconds::from_base(1e-9);
  gemm_params free = p;
  free.cast_row_time = {};
  const auto time = [](const gemm_params& x, const gemm_shape& s) {
    return gemm_cost(gb200(), x, precision::nvfp4, s).time.base();
  };
  const gemm_shape narrow{.m = 65536, .n = 128, .k = 64}, wide{.m = 65536, .n = 128, .k = 16384};
  const double bytes_time =
      65536.0 * 64 * (2 + bytes_per_element(precision::nvfp4)) / (gb200().hbm_bandwidth.base() * p.hbm_share);
  CHECK(time(p, narrow) - time(free, narrow) == Approx(65536e-9 - bytes_time));
  CHECK(time(p, wide) == time(free, wide));
  p.cast_passes = free.cast_passes = 0;  // quantised before
  CHECK(time(p, narrow) == time(free, narrow));
}

TEST_CASE("GEMM of the reference formula, worked by hand") {
  // One SM, one tile of 64 x 64 and a rate that makes a unit of k last 3 ns against a shortest step of 4 ns.
  gpu_spec gpu = gb200();
  gpu.sm_count = 1;
  gpu.hbm_bandwidth = bandwidth::from_base(1e9);
  gemm_params p;
  p.tensor_rate = flop_rate::from_base(2.0 * 64 * 64 / 3e-9);
  p.step_time = seconds::from_base(4e-9);
  p.fill_depth = 20;
  p.hbm_share = 0.5;
  p.launch = seconds::from_base(1e-6);
  const double compute = 120 * std::cbrt(27.0 + 64.0) * 1e-9;
  const double memory = (2 * 64 * 100 * 2 + 2 * 64 * 64) / 0.5e9;
  const kernel_cost c = gemm_cost(gpu, p, precision::bf16, {.m = 64, .n = 64, .k = 100});
  CHECK(c.time.base() == Approx(1e-6 + std::cbrt(compute * compute * compute + memory * memory * memory)));
  CHECK(c.limit == kernel_resource::memory);
}

TEST_CASE("GEMM splits k only when the kernels can and it pays") {
  gemm_params p = blackwell().gemm.at(precision::bf16);
  const gemm_shape deep{.m = 128, .n = 128, .k = 65536}, flat{.m = 8192, .n = 8192, .k = 1024};
  gemm_params whole = p;
  whole.split_time.reset();
  const auto bf16 = [](const gemm_params& x, const gemm_shape& s) {
    return gemm_cost(gb200(), x, precision::bf16, s);
  };
  CHECK(bf16(p, deep).time < 0.5 * bf16(whole, deep).time);
  CHECK(bf16(p, deep).moved > bf16(whole, deep).moved);  // partial sums
  CHECK(bf16(p, flat).time == bf16(whole, flat).time);
}

TEST_CASE("GEMM names what limits it") {
  CHECK(cost(precision::bf16, {.m = 8192, .n = 8192, .k = 8192}).limit == kernel_resource::compute);
  CHECK(cost(precision::bf16, {.m = 8, .n = 65536, .k = 16384}).limit == kernel_resource::memory);
  CHECK(cost(precision::fp8, {.m = 8, .n = 64, .k = 64}).limit == kernel_resource::launch);
  CHECK(name(kernel_resource::launch) == "launch");
}

TEST_CASE("GEMM of nothing costs nothing and of the largest sizes stays finite") {
  for (const gemm_shape s :
       {gemm_shape{.m = 0, .n = 5, .k = 5}, gemm_shape{.m = 5, .n = 0, .k = 5}, gemm_shape{.m = 5, .n = 5, .k = 0},
        gemm_shape{.m = 5, .n = 5, .k = 5, .groups = 0}}) {
    const kernel_cost c = cost(precision::fp8, s);
    CHECK(c.time.base() == 0);
    CHECK(c.flop.base() == 0);
    CHECK(c.moved.base() == 0);
  }
  CHECK(std::isfinite(time(precision::bf16, {.m = 1e12, .n = 1e12, .k = 1e6, .groups = 1e3})));
  CHECK(time(precision::bf16, {.m = 0.25, .n = 4096, .k = 4096}) > 0);  // an expert's expected share of a token
}

}  // namespace
}  // namespace nvlsim
