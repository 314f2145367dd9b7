#include "nvlsim/network/topology.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "support/ports.hpp"

using namespace nvlsim;

TEST_CASE("Topology takes port capacities and latency from the platform") {
  const platform p = test::bare_ports(2.5_us);
  const std::vector<std::int64_t> gpus{3, 75};
  const network::topology t = network::describe(p, gpus, 1.0_us);
  REQUIRE(t.nvlink.ports.size() == 2);
  REQUIRE(t.fabric.ports.size() == 2);
  CHECK(t.nvlink.ports[1].gpu == 75);
  CHECK(t.nvlink.ports[1].up == 900.0_GBps);
  CHECK(t.nvlink.ports[1].down == 900.0_GBps);
  CHECK(t.nvlink.latency == 1.0_us);
  CHECK(t.fabric.ports[0].gpu == 3);
  CHECK(t.fabric.ports[0].up == 100.0_GBps);
  CHECK(t.fabric.latency == 2.5_us);
  CHECK(t.fabric.aggregates.empty());
}
