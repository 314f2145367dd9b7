#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "nvlsim/platform/platform.hpp"

using namespace nvlsim;

namespace {

fabric_spec fabric_of(int ports, double oversubscription = 1) {
  fabric_spec f;
  f.nic_bandwidth = f.leaf.port_bandwidth = bandwidth::from_base(50e9);
  f.leaf.ports = ports;
  f.oversubscription = oversubscription;
  return f;
}

struct tree_case {
  int ports;
  std::int64_t endpoints;
  std::vector<std::int64_t> switches;
  std::int64_t cables;
};

std::int64_t total(const fat_tree& t) {
  return std::accumulate(t.switches.begin(), t.switches.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("Fat tree has the published number of switches") {
  const auto c = GENERATE(tree_case{144, 72, {1}, 0},  // a rack under one Q3400
                          tree_case{144, 144, {1}, 0}, tree_case{144, 145, {3, 2}, 216},
                          tree_case{144, 72 * 72, {72, 36}, 72 * 72},  // 72 racks, a leaf each
                          tree_case{144, 4608, {64, 32}, 4608},        // Azure's first GB300 cluster, 64 racks
                          tree_case{144, 10368, {144, 72}, 10368},     // NVIDIA's limit of two levels
                          tree_case{144, 10369, {145, 145, 73}, 2 * 10440},
                          tree_case{144, 331200, {4600, 4600, 2300}, 662400},  // 4,600 racks
                          tree_case{64, 2048, {64, 32}, 2048}, tree_case{64, 2049, {65, 65, 33}, 2 * 2080},
                          tree_case{64, 4608, {144, 144, 72}, 2 * 4608},        // the same cluster on QM9700
                          tree_case{64, 65536, {2048, 2048, 1024}, 2 * 65536},  // 64^3 / 4
                          tree_case{64, 65537, {2049, 2049, 2049, 1025}, 3 * 65568});
  const fat_tree t = size_fat_tree(fabric_of(c.ports), c.endpoints);
  CAPTURE(c.ports, c.endpoints);
  CHECK(t.switches == c.switches);
  CHECK(t.levels == static_cast<int>(c.switches.size()));
  CHECK(t.cables == c.cables);
}

TEST_CASE("Fat tree of nothing is empty") {
  CHECK(size_fat_tree(fabric_of(64), 0).levels == 0);
  CHECK(size_fat_tree(fabric_of(64), 0).switches.empty());
}

TEST_CASE("Fat tree with two NIC ports for each fast NIC is twice as large") {
  fabric_spec f = fabric_of(64);
  f.nic_bandwidth = 2 * f.leaf.port_bandwidth;
  CHECK(size_fat_tree(f, 1024).switches == size_fat_tree(fabric_of(64), 2048).switches);
}

TEST_CASE("Fat tree of GPUs that share NICs is that of the NICs") {
  fabric_spec f = fabric_of(64);
  f.gpus_per_nic = 8;
  f.nic_bandwidth = f.leaf.port_bandwidth / 8.0;
  CHECK(size_fat_tree(f, 8 * 64).switches == std::vector<std::int64_t>{1});
  CHECK(size_fat_tree(f, 8 * 64 + 1).switches == size_fat_tree(fabric_of(64), 65).switches);
  f.nic_bandwidth = f.leaf.port_bandwidth / 4.0;  // two ports a NIC
  CHECK(size_fat_tree(f, 8 * 1024).switches == size_fat_tree(fabric_of(64), 2048).switches);
}

TEST_CASE("Fat tree oversubscribed keeps the ratio at its leaves and needs fewer spines") {
  // 64 ports at 3:1 are 48 down and 16 up.
  const fat_tree t = size_fat_tree(fabric_of(64, 3), 3072);
  CHECK(t.switches == std::vector<std::int64_t>{64, 16});
  CHECK(t.cables == 64 * 16);
}

TEST_CASE("Fat tree rejects what no tree can be built of") {
  CHECK_THROWS_AS(size_fat_tree(fabric_of(3), 10), std::invalid_argument);
  CHECK_THROWS_AS(size_fat_tree(fabric_of(64, 0.5), 10), std::invalid_argument);
  fabric_spec nobody = fabric_of(64);
  nobody.gpus_per_nic = 0;
  CHECK_THROWS_AS(size_fat_tree(nobody, 10), std::invalid_argument);
}

TEST_CASE("Fat tree grows with its endpoints and carries them all") {
  const int ports = GENERATE(4, 6, 7, 64, 144);
  const double oversubscription = GENERATE(1.0, 1.5, 2.0, 7.0);
  const fabric_spec f = fabric_of(ports, oversubscription);
  fat_tree before;
  for (std::int64_t n = 1; n < 2'000'000; n += 1 + n / 7) {
    const fat_tree t = size_fat_tree(f, n);
    CAPTURE(ports, oversubscription, n);
    REQUIRE(total(t) >= total(before));
    REQUIRE(t.cables >= before.cables);
    REQUIRE(t.levels >= before.levels);
    before = t;
    if (t.levels == 1) continue;
    // Leaves hold the endpoints and their share of up-links; every cable has a port at both ends.
    const std::int64_t all_ports = total(t) * ports;
    REQUIRE(n + 2 * t.cables <= all_ports);
    const double first_level = static_cast<double>(t.cables) / (t.levels - 1);
    REQUIRE(first_level * oversubscription >= static_cast<double>(n) * (1 - 1e-9) / (t.levels > 2 ? 1.01 : 1.0));
    // No level above is narrower than what the level below sends up.
    for (std::size_t i = 1; i + 1 < t.switches.size(); ++i)
      REQUIRE(t.switches[i] * (ports / 2) * oversubscription >= static_cast<double>(n) * (1 - 1e-9));
    REQUIRE(t.switches.back() * ports * oversubscription >= static_cast<double>(n) * (1 - 1e-9));
  }
}

TEST_CASE("Pods are trees with a level above them, thinner where they are oversubscribed") {
  fabric_spec f = fabric_of(64);
  f.pod_gpus = 1024;
  const fat_tree whole = size_fat_tree(f, 8192);
  CHECK(whole.switches == std::vector<std::int64_t>{256, 256, 128});  // 32 leaves and 32 spines a pod
  CHECK(whole.cables == 2 * 8192);
  f.pod_oversubscription = 7;
  const fat_tree thin = size_fat_tree(f, 8192);
  CHECK(thin.switches == std::vector<std::int64_t>{256, 8 * 19, 19});  // 56 ports down, 8 up
  CHECK(thin.cables == 8192 + 8 * 19 * 8);
  CHECK(size_fat_tree(f, 1024).switches == size_fat_tree(fabric_of(64), 1024).switches);
}
