#include <catch2/catch.hpp>

#include "support/platforms.hpp"

using namespace nvlsim;
using nvlsim::test::read_shipped;

TEST_CASE("Totals of a toy platform can be done by eye") {
  platform p = nvlsim::test::read(nvlsim::test::toy_text()).p;
  p.racks = 3;
  const platform_totals t = totals(p);
  CHECK(t.racks == 3);
  CHECK(t.vms == 6);
  CHECK(t.gpus == 12);
  CHECK(t.cpus == 6);
  CHECK(t.nvlink.base() == 12e12);
  CHECK(t.hbm_nominal.base() == 1.2e12);
  CHECK(t.lpddr.base() == 3e12);
  CHECK(t.nvme.base() == 48e12);
  CHECK(t.fp4_dense.base() == 0);
  CHECK(t.fp4_sparse.base() == 0);
  // A rack: 2 x (2 x 1 kW + 300 W + 200 W) + 600 W = 5.6 kW behind a supply of 50 %.
  CHECK(t.max_power.base() == Approx(3 * 11.2e3));
}

TEST_CASE("Totals of a GB300 rack agree with the vendor's dense and sparse figures") {
  const platform p = read_shipped("gb300-nvl72").p;
  const platform_totals t = totals(p);
  CHECK(t.racks == 1);
  CHECK(t.vms == 18);
  CHECK(t.gpus == 72);
  CHECK(t.cpus == 36);
  CHECK(t.nvlink.base() == 1.296e14);
  CHECK(t.fp4_dense.base() == 1.08e18);
  CHECK(t.fp4_sparse.base() == 1.44e18);
  CHECK(t.hbm_nominal.base() == 20.736e12);
  CHECK(t.hbm_usable.base() == 72 * 298013687808.0);
  CHECK(t.lpddr.base() == 17.28e12);
  CHECK(t.nvme.base() == 288e12);
  CHECK(p.fabric.nic_bandwidth.base() == 1e11);
  CHECK(t.max_power.base() == Approx(133423.0).epsilon(1e-4));
}

TEST_CASE("Totals of a GB200 rack have the same sparse FP4 and two thirds of the dense") {
  const platform p = read_shipped("gb200-nvl72").p;
  const platform_totals t = totals(p);
  CHECK(t.gpus == 72);
  CHECK(t.nvlink.base() == 1.296e14);
  CHECK(t.fp4_dense.base() == 7.2e17);
  CHECK(t.fp4_sparse.base() == 1.44e18);
  CHECK(t.hbm_nominal.base() == 13.392e12);
  CHECK(t.hbm_usable.base() == 72 * 198674743296.0);
  CHECK(p.fabric.nic_bandwidth.base() == 5e10);
}

TEST_CASE("Totals of an H100 server have no FP4 and the documented maximum power") {
  const platform p = read_shipped("nd-h100-v5").p;
  const platform_totals t = totals(p);
  CHECK(t.vms == 1);
  CHECK(t.gpus == 8);
  CHECK(t.cpus == 2);
  CHECK(t.nvlink.base() == 7.2e12);
  CHECK(t.fp4_dense.base() == 0);
  CHECK(t.nvme.base() == 28 * 1099511627776.0);
  CHECK(t.max_power.base() == Approx(10.2e3).epsilon(0.01));
}

TEST_CASE("Totals grow in proportion to the racks") {
  platform p = read_shipped("gb300-nvl72").p;
  const platform_totals one = totals(p);
  p.racks = 4600;
  const platform_totals many = totals(p);
  CHECK(many.gpus == 331200);
  CHECK(many.fp4_dense.base() == Approx(4600 * one.fp4_dense.base()));
  CHECK(many.max_power.base() == Approx(4600 * one.max_power.base()));
}
