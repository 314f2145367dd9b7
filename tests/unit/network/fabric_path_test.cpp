#include "nvlsim/network/fabric_path.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace nvlsim;
using network::path_between;

namespace {

/// 64 racks of 72 GPUs, a leaf of 144 ports a rack, 32 spines.
platform cluster() {
  platform p;
  p.vm.gpus = 4;
  p.rack.vms = 18;
  p.racks = 64;
  p.fabric.nic_bandwidth = 800.0_Gbps;
  p.fabric.leaf.ports = 144;
  p.fabric.leaf.port_bandwidth = 800.0_Gbps;
  return p;
}

double share(const platform& p, int ranks = 4608, bool aligned = false) {
  return path_between(p, ranks, aligned).nic / p.fabric.nic_bandwidth;
}

}  // namespace

TEST_CASE("A non-blocking fabric gives every NIC its rate") {
  CHECK(share(cluster()) == 1);
  CHECK(path_between(cluster(), 72, false).switches == 1);
  CHECK(path_between(cluster(), 73, false).switches == 3);
  platform large = cluster();
  large.racks = 4600;
  CHECK(path_between(large, 331200, false).switches == 5);
}

TEST_CASE("An oversubscribed fabric slows what leaves a leaf") {
  platform p = cluster();
  p.fabric.oversubscription = 3;  // 108 ports down, 36 up
  CHECK(share(p, 108) == 1);
  CHECK(share(p, 109) == Approx(1.0 / 3));
  p.fabric.rails = 4;
  CHECK(share(p, 400, true) == 1);
  CHECK(share(p, 400, false) == Approx(4.0 / 9));  // a quarter of the peers are on the same rail
  CHECK(share(p, 4608, false) == Approx(1.0 / 3));
}

TEST_CASE("Of neighbours that all send those share the up-links that leave their leaf") {
  platform p = cluster();
  const auto of_nic = [&](std::int64_t apart) {
    return network::path_of_shift(p, apart).nic / p.fabric.nic_bandwidth;
  };
  for (const std::int64_t apart : {1, 64, 108, 1000}) CHECK(of_nic(apart) == 1);
  p.fabric.oversubscription = 3;  // 108 ports down, 36 up
  CHECK(of_nic(36) == 1);         // as many leave as there are up-links
  CHECK(of_nic(54) == Approx(2.0 / 3));
  CHECK(of_nic(108) == Approx(1.0 / 3));
  CHECK(of_nic(2000) == Approx(1.0 / 3));
  p.racks = 1;  // one leaf holds all
  CHECK(of_nic(54) == 1);
}

TEST_CASE("Along a rail only the last domain of a leaf leaves it") {
  platform p = cluster();  // servers of eight, rails of their NICs
  p.vm.gpus = 8;
  p.rack.vms = 1;
  p.racks = 1024;
  p.fabric.rails = 8;
  p.fabric.oversubscription = 8;     // 128 ports down, 16 up
  CHECK(share(p, 8192, true) == 1);  // one NIC of 128 in each rail, and 16 up-links
  CHECK(share(p, 8192, false) == Approx(1.0 / 8));
  platform racks = cluster();  // 18 NICs of a rack in each rail, for 16 up-links
  racks.fabric.rails = 4;
  racks.fabric.oversubscription = 8;
  CHECK(share(racks, 4608, true) == Approx(16.0 / 18));
  // What does not stay in its rail leaves the leaf, also where each rail needs one leaf only.
  for (const int ranks : {128, 512, 1024, 1032, 8192}) {
    INFO(ranks);
    const network::fabric_path path = path_between(p, ranks, false);
    CHECK(path.nic / p.fabric.nic_bandwidth == Approx(ranks > 1024 ? 1.0 / 8 : 1.0 / 7));  // one peer of 8 is near
    CHECK(path.leaving == Approx(ranks > 1024 ? 1 : 7.0 / 8));
    CHECK(path.nic >= path_between(p, ranks + 8, false).nic);
  }
  // A rail whose NICs fit one leaf is never left, whatever the distance.
  racks.racks = 4;
  CHECK(network::path_of_shift(racks, 72).nic == racks.fabric.nic_bandwidth);
  racks.racks = 64;
  CHECK(network::path_of_shift(racks, 72).nic < racks.fabric.nic_bandwidth);
  CHECK(network::path_of_shift(racks, 72).nic == path_between(racks, 4608, true).nic);
  // Without rails neighbours may be anywhere.
  p.fabric.rails = 1;
  CHECK(share(p, 8192, true) == Approx(1.0 / 8));
}

TEST_CASE("Broken spines and cables cost their share, or a collision where routes are fixed") {
  platform p = cluster();
  p.fabric.failed_spines = 1;
  CHECK(share(p) == Approx(31.0 / 32));
  p.fabric.failed_spines = 0;
  p.fabric.failed_cables = 2;
  CHECK(share(p) == Approx(70.0 / 72));
  p.fabric.routing = fabric_routing::fixed;
  CHECK(share(p) == 0.5);
  p.fabric.failed_cables = 0;
  CHECK(share(p) == 1);
}

TEST_CASE("More broken than there is is refused, with how many there are") {
  using Catch::Matchers::Contains;
  platform p = cluster();
  p.fabric.failed_spines = 31;
  CHECK(share(p) == Approx(1.0 / 32));
  p.fabric.failed_spines = 32;
  CHECK_THROWS_WITH(share(p), Contains("32 failed") && Contains("has only 32"));
  p.fabric.failed_spines = 0;
  p.fabric.failed_cables = 72;
  CHECK_THROWS_WITH(share(p), Contains("72 failed") && Contains("72 up-links"));
  p.racks = 1;
  CHECK_THROWS_WITH(share(p, 8), Contains("one leaf"));
}

TEST_CASE("Hashed routes collide, less with more connections") {
  platform p = cluster();
  p.fabric.routing = fabric_routing::hashed;
  const double one = share(p);
  p.fabric.connections = 16;
  const double sixteen = share(p);
  CHECK(one == Approx(0.25));  // some cable of 72 gets four
  CHECK(sixteen > one);
  CHECK(sixteen < 1);
  CHECK(share(p, 72) == 1);
  CHECK(network::fullest_bin(1, 1) >= 1);
  // Few NICs have the up-links almost to themselves, at any oversubscription that leaves them room.
  p.fabric.connections = 1;
  double last = one;
  for (const double busy : {0.5, 0.2, 0.05, 0.01}) {
    p.fabric.busy = busy;
    CHECK(share(p) >= last);
    last = share(p);
  }
  CHECK(last == 1);
}

TEST_CASE("A path says what of its traffic crosses the up-links, and up-links what a GPU has of them") {
  platform p = cluster();
  CHECK(network::uplink_of(p) == p.fabric.nic_bandwidth.read());
  p.fabric.oversubscription = 3;
  CHECK(network::uplink_of(p) / p.fabric.nic_bandwidth == Approx(1.0 / 3));
  CHECK(path_between(p, 108, false).leaving == 0);
  CHECK(path_between(p, 109, false).leaving == 1);
  CHECK(network::path_of_shift(p, 54).leaving == Approx(0.5));
  for (const std::int64_t apart : {1, 20, 54, 108, 500}) {
    const network::fabric_path path = network::path_of_shift(p, apart);
    CHECK(path.nic.base() ==
          Approx(std::min(p.fabric.nic_bandwidth.base(), network::uplink_of(p).base() / path.leaving)));
  }
  p.racks = 1;
  CHECK(network::uplink_of(p) == p.fabric.nic_bandwidth.read());
}

TEST_CASE("Where only part of a leaf's NICs send, each has more of the up-links, up to its own rate") {
  platform p = cluster();
  p.fabric.oversubscription = 8;
  const double all = network::uplink_of(p).base();
  p.fabric.busy = 0.25;
  CHECK(network::uplink_of(p).base() == Approx(4 * all));
  CHECK(share(p) == Approx(0.5));
  p.fabric.busy = 0.01;
  CHECK(share(p) == 1);
}

TEST_CASE("Pods share what their spines have towards the other pods") {
  platform p = cluster();
  p.racks = 128;
  p.fabric.pod_gpus = 2304;  // four pods of 32 racks
  p.fabric.pod_oversubscription = 7;
  CHECK(share(p, 2304) == 1);
  CHECK(share(p, 9216) == Approx(1.0 / 7 / 0.75));  // a quarter of the peers are in the same pod
  CHECK(share(p, 4608) == Approx(1.0 / 7 / 0.5));
  CHECK(path_between(p, 2304, false).switches == 3);
  CHECK(path_between(p, 9216, false).switches == 5);
  // Of a ring only the last rack of a pod sends to another pod, with room for 2304 / 7 GPUs.
  CHECK(share(p, 9216, true) == 1);
  CHECK(network::path_of_shift(p, 72).nic == p.fabric.nic_bandwidth);
  CHECK(network::path_of_shift(p, 2304).nic / p.fabric.nic_bandwidth == Approx(1.0 / 7));
  CHECK(network::path_of_shift(p, 576).nic / p.fabric.nic_bandwidth == Approx(4.0 / 7));
  // Where leaves limit as well, the slower level counts.
  const network::fabric_path whole = path_between(p, 9216, false);
  p.fabric.oversubscription = 2;
  CHECK(share(p, 9216) == Approx(1.0 / 14 / 0.75));
  CHECK(share(p, 2304) == Approx(0.5));
  CHECK((limits(p, network::uplink_level::leaves) && limits(p, network::uplink_level::pods)));
  CHECK(network::uplink_of(p, network::uplink_level::leaves) / p.fabric.nic_bandwidth == Approx(0.5));
  CHECK(network::uplink_of(p, network::uplink_level::pods) / p.fabric.nic_bandwidth == Approx(1.0 / 14));
  CHECK(path_between(p, 9216, false).leaving == 1);
  CHECK(path_between(p, 9216, false).leaving_pod == Approx(0.75));
  CHECK(path_between(p, 2304, false).leaving_pod == 0);
  p.fabric.oversubscription = 1;
  CHECK(path_between(p, 9216, false).leaving == 0);
  // Without oversubscription pods change nothing, and one pod is none.
  CHECK_FALSE(limits(p, network::uplink_level::leaves));
  CHECK(limits(p, network::uplink_level::pods));
  p.fabric.pod_oversubscription = 1;
  CHECK(share(p, 9216) == 1);
  p.fabric.pod_oversubscription = 7;
  p.fabric.pod_gpus = 9216;
  CHECK(share(p, 9216) == 1);
  CHECK(whole.leaving_pod == Approx(0.75));
}

TEST_CASE("Paths get no faster with more oversubscription of pods or smaller pods") {
  platform p = cluster();
  p.racks = 128;
  for (const bool aligned : {false, true})
    for (const int ranks : {72, 576, 2304, 4608, 9216}) {
      double last = 1;
      for (const double ratio : {1, 2, 4, 7, 16, 64}) {
        p.fabric.pod_gpus = 1152;
        p.fabric.pod_oversubscription = ratio;
        const double now = share(p, ranks, aligned);
        CHECK(now <= last);
        last = now;
        p.fabric.pod_gpus = 576;
        CHECK(share(p, ranks, aligned) <= now);
      }
    }
}

TEST_CASE("GPUs of a pod have its up-links together, and broken switches of the top take their share") {
  platform p = cluster();
  p.fabric.pod_gpus = 1152;
  p.fabric.pod_oversubscription = 4;
  CHECK(network::uplink_of(p) / p.fabric.nic_bandwidth == Approx(0.25));
  CHECK(network::gpus_per_uplink_group(p, network::uplink_level::pods) == 1152);
  CHECK(network::uplink_group_of(p, network::uplink_level::pods, 1151) == 0);
  CHECK(network::uplink_group_of(p, network::uplink_level::pods, 1152) == 1);
  const auto top = static_cast<double>(size_fat_tree(p.fabric, p.gpus()).switches.back());
  p.fabric.failed_spines = 2;
  CHECK(network::uplink_of(p) / p.fabric.nic_bandwidth == Approx(0.25 * (1 - 2 / top)));
}
