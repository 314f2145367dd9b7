#include <catch2/catch.hpp>
#include <cmath>

#include "unit/compute/support.hpp"

namespace nvlsim {
namespace {

using test::blackwell;
using test::gb200;
using test::shipped_gpu;
using test::shipped_kernels;

kernel_cost bf16(double m, double n, double k) {
  return gemm_cost(gb200(), blackwell().gemm.at(precision::bf16), precision::bf16, {.m = m, .n = n, .k = k});
}

TEST_CASE("Stream kernel takes launch plus bytes over its share of the stream rate") {
  const bytes moved = 10.0_GB;
  const kernel_cost c = stream_cost(gb200(), blackwell().stream, moved);
  CHECK(c.time.base() == Approx(blackwell().stream.launch.base() +
                                10e9 / (blackwell().stream.hbm_share * gb200().hbm_stream.base())));
  CHECK(c.moved == moved);
  CHECK(c.flop.base() == 0);
  CHECK(c.limit == kernel_resource::memory);
  CHECK(stream_cost(gb200(), blackwell().stream, 1.0_B).limit == kernel_resource::launch);
  CHECK(stream_cost(gb200(), blackwell().stream, {}).time.base() == 0);
}

TEST_CASE("Power lies between idle and the cap") {
  for (const auto& [p, params] : blackwell().gemm)
    for (const double m : {1.0, 64.0, 4096.0, 65536.0}) {
      const watts w = kernel_power(gb200(), p, gemm_cost(gb200(), params, p, {.m = m, .n = 8192, .k = 8192}));
      CHECK(w >= gb200().idle_power);
      CHECK(w <= gb200().tdp);
    }
  CHECK(kernel_power(gb200(), precision::bf16, {}) == gb200().idle_power);
}

TEST_CASE("Power of measured kernels is near the readings") {
  // GB200, NVML: large GEMMs 1,165 to 1,180 W; streaming weights at 6.4 TB/s about 1,000 W.
  CHECK(kernel_power(gb200(), precision::bf16, bf16(8192, 8192, 8192)).base() == Approx(1170).margin(60));
  const kernel_cost streaming = stream_cost(gb200(), {.hbm_share = 6.4 / 7.35, .launch = {}}, 64.0_GB);
  CHECK(kernel_power(gb200(), precision::bf16, streaming).base() == Approx(1000).margin(40));
}

TEST_CASE("The energy of memory traffic is that of its bytes, however fast it is") {
  const stream_params stream{.hbm_share = 1, .launch = {}};
  const auto joules = [&](const gpu_spec& gpu) {
    const kernel_cost c = stream_cost(gpu, stream, 64.0_GB);
    return ((kernel_power(gpu, precision::bf16, c) - gpu.idle_power) * c.time).base();
  };
  gpu_spec fast = gb200();
  fast.hbm_bandwidth *= 4, fast.hbm_stream *= 4;
  CHECK(joules(gb200()) == Approx(64e9 * gb200().hbm_energy.base()));
  CHECK(joules(fast) == Approx(64e9 * gb200().hbm_energy.base()));
  fast.power_cap = 600.0_W;  // who asks for a cap gets it
  CHECK(kernel_power(fast, precision::bf16, stream_cost(fast, stream, 64.0_GB)) == 600.0_W);
}

TEST_CASE("Power without a measured energy reaches the cap at the dense peak") {
  gpu_spec gpu = gb200();
  auto& peak = gpu.peaks[static_cast<std::size_t>(precision::bf16)];
  peak->energy.reset();
  gpu.hbm_energy = {};
  const seconds second = 1.0_s;
  CHECK(kernel_power(gpu, precision::bf16, {.time = second, .flop = peak->dense * second, .moved = {}}).base() ==
        Approx(gpu.tdp.base()));
  CHECK(kernel_power(gpu, precision::bf16, {.time = second, .flop = 0.5 * (peak->dense * second), .moved = {}})
            .base() == Approx((gpu.tdp + gpu.idle_power).base() / 2));
}

TEST_CASE("Kernels are looked up by GPU, then by architecture") {
  stack s;
  s.name = "mine";
  s.kernels["blackwell"].gpu = "blackwell";
  CHECK(kernels_for(s, gb200()).gpu == "blackwell");
  s.kernels["gb200"].gpu = "gb200";
  CHECK(kernels_for(s, gb200()).gpu == "gb200");
  gpu_spec other = gb200();
  other.name = "gb20";
  other.architecture = "rubin";
  try {
    kernels_for(s, other);
    FAIL("no problem reported");
  } catch (const input_error& e) {
    REQUIRE(e.problems().size() == 1);
    CHECK(e.problems()[0].what ==
          "no kernel parameters for GPU \"gb20\" of architecture \"rubin\"; the stack has blackwell, gb200");
    CHECK(e.problems()[0].hint == "gb200");
  }
}

TEST_CASE("A power cap slows tensor work by its exponent and leaves memory alone") {
  gpu_spec capped = gb200();
  capped.power_cap = gb200().idle_power + (gb200().tdp - gb200().idle_power) * 0.25;
  const kernel_profile k = kernels_for(shipped_kernels(), capped);
  const gemm_params &slow = k.gemm.at(precision::bf16), &full = blackwell().gemm.at(precision::bf16);
  CHECK(slow.tensor_rate / full.tensor_rate == Approx(std::pow(0.25, blackwell().power_exponent)));
  CHECK(slow.hbm_share == full.hbm_share);
  CHECK(kernels_note(shipped_kernels(), capped).find("power cap") != std::string::npos);
  CHECK(kernels_note(shipped_kernels(), gb200()).empty());
}

TEST_CASE("A GPU that nobody measured gets the shares of the nearest generation") {
  const gpu_spec amd = shipped_gpu("mi300x-v5");
  const kernel_profile k = kernels_for(shipped_kernels(), amd);
  const kernel_profile& hopper = shipped_kernels().kernels.at("hopper");
  // Less than the share of NVIDIA's GPUs, by what the best GEMM of an MI300X reaches beside that of an H100.
  const double share =
      hopper.gemm.at(precision::bf16).tensor_rate.base() / 989e12 * (668 / 1307.0) / (795 / 989.0);
  CHECK(k.gemm.at(precision::bf16).tensor_rate.base() ==
        Approx(share * amd.dense_peak(precision::bf16)->base()).epsilon(1e-3));
  CHECK(kernels_note(shipped_kernels(), amd).find("data-sheet") != std::string::npos);
  // Its own power is in no entry, so another tdp changes no rate, and the note says so; a cap does.
  CHECK(kernels_note(shipped_kernels(), amd).find("no tdp") != std::string::npos);
  gpu_spec less = amd, capped = amd;
  less.tdp = less.tdp * 0.5, capped.power_cap = amd.tdp * 0.5;
  CHECK(kernels_for(shipped_kernels(), less).gemm.at(precision::bf16).tensor_rate ==
        k.gemm.at(precision::bf16).tensor_rate);
  CHECK(kernels_for(shipped_kernels(), capped).gemm.at(precision::bf16).tensor_rate <
        k.gemm.at(precision::bf16).tensor_rate);
  CHECK_FALSE(kernels_for(shipped_kernels(), shipped_gpu("nd40rs-v2")).gemm.contains(precision::bf16));
}

}  // namespace
}  // namespace nvlsim
