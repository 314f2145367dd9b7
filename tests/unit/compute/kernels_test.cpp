// What must hold of every kernel on every GPU, measured or not.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "unit/compute/support.hpp"

namespace nvlsim {
namespace {

constexpr std::array<const char*, 9> machines = {"gb300-nvl72", "gb200-nvl72", "hgx-b300", "hgx-b200", "nd-h200-v5",
                                                 "nd-h100-v5",  "ndm-a100-v4", "vera-rubin-nvl72", "nd40rs-v2"};

struct on {
  gpu_spec gpu;
  kernel_profile kernels;
  explicit on(const char* name) : gpu(test::shipped_gpu(name)), kernels(kernels_for(test::shipped_kernels(), gpu)) {}
};

TEST_CASE("GEMMs never beat the dense peak or the HBM of the data sheet") {
  for (const char* name : machines) {
    const on m(name);
    for (const auto& [format, p] : m.kernels.gemm) {
      const auto peak = m.gpu.dense_peak(format);
      if (!peak) continue;
      for (const double rows : {1.0, 7.0, 100.0, 4096.0, 65536.0})
        for (const double n : {1.0, 129.0, 8192.0, 50257.0}) {
          const kernel_cost c = gemm_cost(m.gpu, p, format, {.m = rows, .n = n, .k = 8192});
          CAPTURE(name, nvlsim::name(format), rows, n);
          CHECK(c.time >= c.work / *peak);
          CHECK(c.time >= c.moved / m.gpu.hbm_bandwidth);
          CHECK(std::isfinite(c.time.base()));
        }
    }
  }
}

TEST_CASE("Narrower formats are not slower on large GEMMs, but for INT8 of Blackwell Ultra") {
  const gemm_shape s{.m = 16384, .n = 16384, .k = 16384};
  for (const char* name : {"gb300-nvl72", "gb200-nvl72", "hgx-b300", "hgx-b200"}) {
    const on m(name);
    const auto time = [&](precision p) { return gemm_cost(m.gpu, m.kernels.gemm.at(p), p, s).time; };
    CAPTURE(name);
    CHECK(time(precision::fp32) > time(precision::tf32));
    CHECK(time(precision::tf32) > time(precision::bf16));
    CHECK(time(precision::bf16) > time(precision::fp8));
    CHECK(time(precision::fp8) > time(precision::nvfp4));
  }
  const on ultra("gb300-nvl72"), first("gb200-nvl72");
  const auto int8 = [&](const on& m) { return gemm_cost(m.gpu, m.kernels.gemm.at(precision::int8), precision::int8, s).time; };
  CHECK(int8(ultra) > 20 * int8(first));  // 165 TOPS against 5 POPS
  CHECK_FALSE(measured_gemm(test::shipped_kernels(), ultra.gpu, precision::int8));
  CHECK(measured_gemm(test::shipped_kernels(), ultra.gpu, precision::nvfp4));
}

TEST_CASE("A GPU that was never measured gets the rates of its architecture by its power") {
  gpu_spec other = test::gb200();
  other.name = "gb250";
  other.tdp = other.idle_power + (other.tdp - other.idle_power) * 1.21;
  const kernel_profile k = kernels_for(test::shipped_kernels(), other);
  const gemm_params& p = k.gemm.at(precision::bf16);
  CHECK(p.tensor_rate.base() == Approx(1.1 * test::blackwell().gemm.at(precision::bf16).tensor_rate.base()));
  CHECK(p.launch == test::blackwell().gemm.at(precision::bf16).launch);
  CHECK(kernels_note(test::shipped_kernels(), other).find("no kernel was measured on gb250") != std::string::npos);
  CHECK(kernels_note(test::shipped_kernels(), test::gb200()).empty());
}

TEST_CASE("Sparse weights halve their bytes and run at the sparse peak's share") {
  const on m("gb200-nvl72");
  const gemm_params& p = m.kernels.gemm.at(precision::bf16);
  const auto cost = [&](double rows, bool sparse) {
    return gemm_cost(m.gpu, p, precision::bf16, {.m = rows, .n = 16384, .k = 16384, .sparse = sparse});
  };
  CHECK(cost(1, false).moved.base() - cost(1, true).moved.base() == Approx(16384.0 * 16384 * (2 - 1.125)));
  const double gain = cost(16384, false).time / cost(16384, true).time;
  CHECK(gain > 1.5);
  CHECK(gain < 2);
  CHECK(cost(16384, true).work == cost(16384, false).work);
}

TEST_CASE("Elementwise kernels move what they read and write") {
  for (const elementwise_kernel& e : elementwise_kernels()) {
    CAPTURE(e.name);
    CHECK(e.bytes >= 2);
    CHECK(std::count_if(elementwise_kernels().begin(), elementwise_kernels().end(),
                        [&](const elementwise_kernel& x) { return x.name == e.name; }) == 1);
  }
}

TEST_CASE("Copies take the rate of their path") {
  diagnostics problems;
  config::document doc = config::load_named(test::root / "platforms", "platform", "gb300-nvl72", {"test", "", {}, {}}, problems);
  const platform p = read_platform(doc, "gb300-nvl72", problems);
  const stream_params& s = test::blackwell().stream;
  const auto size = bytes::from_base(1e12);
  const auto time = [&](copy_path path) { return copy_cost(p, s, path, size).time.base(); };
  CHECK(time(copy_path::from_cpu) == Approx(1e12 / p.gpu.c2c.base()).epsilon(1e-4));
  CHECK(time(copy_path::nvme_read) == Approx(1e12 * p.vm.gpus / p.vm.nvme_read.base()).epsilon(1e-4));
  CHECK(time(copy_path::nvme_write) > time(copy_path::nvme_read));
  CHECK(time(copy_path::hbm) < time(copy_path::from_cpu));
  CHECK(time(copy_path::hbm) >= 2e12 / p.gpu.hbm_bandwidth.base());
  CHECK(copy_cost(p, s, copy_path::hbm, {}).time.base() == 0);
}

}  // namespace
}  // namespace nvlsim
