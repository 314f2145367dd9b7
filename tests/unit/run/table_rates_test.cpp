// Rates of a step's kernels beside those of the kernel tables.
#include <catch2/catch.hpp>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/run/explain_scenario.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

time_use kernel_of(const part_facts& f, std::string phase, double flop) {
  time_use u;
  u.name = "kernel", u.phase = std::move(phase), u.limit = resource::tensor_cores;
  u.work_flop = flop, u.facts = f;
  return u;
}

TEST_CASE("A kernel that tensor cores limit has the rate of its shape in the kernel tables beside its own") {
  const platform p = test::ideal_machine();
  kernel_profile table = test::ideal_stack().kernels.at("ideal");
  table.gemm[precision::fp8_block].tensor_rate = 500.0_TFLOPS;
  table.attention.tensor_rate = 250.0_TFLOPS;
  table.attention.backward_efficiency = 0.5;
  part_facts gemm, mx, attention;
  gemm.extent = mx.extent = gemm_extent{8192, 8192, 8192, 1};
  gemm.operands = precision::fp8, mx.operands = precision::mxfp8;
  attention.extent = attention_extent{1, 32, 8192, 4096};
  const double products = 2.0 * 8192 * 8192 * 8192, scores = 4.0 * 32 * 8192 * 4096 * 128;
  explanation e;
  e.kernels = {kernel_of(gemm, "forward", products), kernel_of(mx, "forward", products),
               kernel_of(attention, "forward", scores), kernel_of(attention, "backward", 2.5 * scores)};
  e.kernels.push_back(e.kernels.front());
  e.kernels.back().limit = resource::hbm;
  e.kernels.push_back(e.kernels.front());
  e.kernels.back().facts.reset();  // several shapes
  add_table_rates(e, p.gpu, table);
  CHECK(*e.kernels[0].table_rate == Approx(1000e12).epsilon(0.05));
  CHECK(*e.kernels[1].table_rate == Approx(500e12).epsilon(0.05));
  CHECK(*e.kernels[2].table_rate == Approx(250e12).epsilon(0.05));
  CHECK(*e.kernels[3].table_rate == Approx(125e12).epsilon(0.05));
  CHECK_FALSE(e.kernels[4].table_rate);
  CHECK_FALSE(e.kernels[5].table_rate);
}

TEST_CASE("A format that no table has measured has no rate beside its own") {
  const platform p = test::ideal_machine();
  const kernel_profile table = test::ideal_stack().kernels.at("ideal");
  part_facts gemm;
  gemm.extent = gemm_extent{8192, 8192, 8192, 1};
  gemm.operands = precision::nvfp4;
  explanation e;
  e.kernels = {kernel_of(gemm, "forward", 1)};
  add_table_rates(e, p.gpu, table);
  CHECK_FALSE(e.kernels.front().table_rate);
}

}  // namespace
}  // namespace nvlsim
