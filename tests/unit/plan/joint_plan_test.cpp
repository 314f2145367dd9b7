// Several plans in one, and the up-links that their classes share.
#include "nvlsim/plan/joint_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/plan/leaf_uplinks.hpp"
#include "support/plans.hpp"

using namespace nvlsim;

namespace {

platform cluster(double oversubscription) {
  platform p;
  p.vm.gpus = 4;
  p.rack.vms = 16;  // 64 GPUs, so that two racks fill a leaf of 128 down-links
  p.racks = 32;
  p.fabric.nic_bandwidth = 800.0_Gbps;
  p.fabric.leaf.ports = 144;
  p.fabric.oversubscription = oversubscription;
  return p;
}

std::vector<std::int64_t> range(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// GPUs of every second rack.
std::vector<std::int64_t> every_second(std::int64_t first_rack, std::int64_t racks) {
  std::vector<std::int64_t> out;
  for (std::int64_t r = 0; r < racks; ++r)
    for (std::int64_t g = 0; g < 64; ++g) out.push_back((first_rack + 2 * r) * 64 + g);
  return out;
}

double share(const shared_uplink& u, const platform& p) { return u.capacity / p.fabric.nic_bandwidth; }

}  // namespace

TEST_CASE("Plans in one run as each does alone, from its start") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const plan a = plans::random_plan(seed, 60), b = plans::random_plan(seed + 100, 90);
    plan all;
    const seconds later = 0.25_s;
    const std::int32_t first_a = add_plan(all, a, "a: ", {}), first_b = add_plan(all, b, "b: ", {.start = later});
    CHECK(all.classes.size() == a.classes.size() + b.classes.size());
    CHECK(all.classes[static_cast<std::size_t>(first_b)].name == "b: " + b.classes.front().name);
    const timeline joint = evaluate(all), alone_a = evaluate(a), alone_b = evaluate(b);
    INFO("seed " << seed);
    const timeline of_a = times_of(joint, a, first_a, {}), of_b = times_of(joint, b, first_b, {.start = later});
    CHECK(of_a.makespan.base() == Approx(alone_a.makespan.base()).epsilon(1e-12));
    CHECK(of_b.makespan.base() == Approx(alone_b.makespan.base()).epsilon(1e-12));
    REQUIRE(of_b.spans.size() == alone_b.spans.size());
    for (std::size_t c = 0; c < of_b.spans.size(); ++c)
      for (std::size_t s = 0; s < of_b.spans[c].size(); ++s) {
        REQUIRE(of_b.spans[c][s].size() == alone_b.spans[c][s].size());
        for (std::size_t i = 0; i < of_b.spans[c][s].size(); ++i)
          CHECK(of_b.spans[c][s][i].end_s == Approx(alone_b.spans[c][s][i].end_s).margin(1e-12));
      }
  }
}

TEST_CASE("Background traffic is a stream for each of its flows") {
  plan all;
  plans::add_class(all, "a");
  add_traffic(all, 0, {"noise", {}, 0.5_s, 3, 0.25_s});
  REQUIRE(all.classes[0].streams.size() == 4);
  CHECK(all.classes[0].streams[3].kind == stream_kind::background);
  CHECK(evaluate(all).makespan.base() == Approx(0.75));
}

TEST_CASE("Leaves hold the GPUs of their rail in order") {
  platform p = cluster(8);
  CHECK(network::gpus_per_uplink_group(p, network::uplink_level::leaves) == 128);
  CHECK(network::leaf_of(p, 0) == network::leaf_of(p, 127));
  CHECK(network::leaf_of(p, 128) == network::leaf_of(p, 0) + 1);
  p.fabric.rails = 4;
  CHECK(network::leaf_of(p, 0) == network::leaf_of(p, 4 * 127));
  CHECK(network::leaf_of(p, 4 * 128) == network::leaf_of(p, 0) + 1);
  CHECK(network::leaf_of(p, 0) != network::leaf_of(p, 1));
}

TEST_CASE("Where the fabric is non-blocking, up-links limit nothing") {
  CHECK(uplinks_of(cluster(1), {{0, range(0, 256)}, {1, range(256, 256)}}).empty());
  CHECK(busiest_group(cluster(1), network::uplink_level::leaves, range(0, 64)) == 1);
}

TEST_CASE("Jobs in blocks of leaves have their up-links to themselves") {
  const platform p = cluster(2);  // 96 down, 48 up
  const auto uplinks = uplinks_of(p, {{0, range(0, 960)}, {1, range(960, 960)}});
  REQUIRE(uplinks.size() == 2);
  for (const shared_uplink& u : uplinks) {
    CHECK(u.classes.size() == 1);
    CHECK(share(u, p) == Approx(0.5));
  }
  CHECK(busiest_group(p, network::uplink_level::leaves, range(0, 960)) == 1);
}

TEST_CASE("Jobs that alternate rack by rack have twice as much alone, and share it") {
  const platform p = cluster(8);  // 128 down, 16 up: two racks
  const auto a = every_second(0, 8), b = every_second(1, 8);
  CHECK(busiest_group(p, network::uplink_level::leaves, a) == Approx(0.5));
  const auto uplinks = uplinks_of(p, {{0, a}, {1, b}});
  REQUIRE(uplinks.size() == 3);
  CHECK(share(uplinks[0], p) == Approx(0.25));
  CHECK(share(uplinks[1], p) == Approx(0.25));
  CHECK(uplinks[2].classes == std::vector<std::int32_t>{0, 1});
  CHECK(share(uplinks[2], p) == Approx(0.25));  // of one GPU of each
}

TEST_CASE("Stages of one job share its part evenly") {
  const platform p = cluster(8);
  const auto uplinks = uplinks_of(p, {{0, range(0, 64)}, {0, range(64, 64)}});
  REQUIRE(uplinks.size() == 2);
  for (const shared_uplink& u : uplinks) CHECK(share(u, p) == Approx(1.0 / 8));
}

TEST_CASE("A class passes the up-links of every kind of leaf that it stands under") {
  const platform p = cluster(8);  // leaves of 128
  // 72 and 56 GPUs under even leaves, 56 and 72 under odd ones.
  std::vector<std::int64_t> a, b;
  for (std::int64_t leaf = 0; leaf < 8; ++leaf)
    for (std::int64_t g = 0; g < 128; ++g) (g < (leaf % 2 == 0 ? 72 : 56) ? a : b).push_back(leaf * 128 + g);
  const auto uneven = uplinks_of(p, {{0, a}, {1, b}});
  REQUIRE(uneven.size() == 4);
  for (const std::size_t i : {0, 1}) CHECK(share(uneven[i], p) == Approx(128 / 8.0 / 72));  // the slowest leaf
  for (const std::size_t i : {2, 3}) {
    const std::vector<std::int32_t>& members = uneven[i].classes;
    CHECK(members.size() == 16);  // 9 to 7
    CHECK(std::abs(std::count(members.begin(), members.end(), 0) - 8) == 1);
    CHECK(share(uneven[i], p) == Approx(16 / 8.0));
  }
  // Jobs that share one of the two leaves that each of them has.
  std::vector<std::int64_t> first = range(0, 64), second = range(64, 64);
  for (std::int64_t g = 0; g < 64; ++g) first.push_back(128 + g), second.push_back(256 + g);
  const auto half = uplinks_of(p, {{0, first}, {1, second}});
  REQUIRE(half.size() == 3);
  CHECK(half[2].classes == std::vector<std::int32_t>{0, 1});
}

TEST_CASE("However jobs are mixed, they share full leaves, and few up-links are listed") {
  const platform p = cluster(8);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<class_place> classes = {{0, {}}, {1, {}}, {2, {}}};
    for (std::int64_t vm = 0; vm < p.gpus() / 8; ++vm) {
      std::vector<std::int64_t>& gpus = classes[random() % classes.size()].gpus;
      for (std::int64_t g = 0; g < 8; ++g) gpus.push_back(vm * 8 + g);
    }
    const auto uplinks = uplinks_of(p, classes);
    CHECK(uplinks.size() <= classes.size() + 4 * (classes.size() + 1));  // three pairs and all three
    for (std::int32_t c = 0; c < 3; ++c)
      CHECK(std::any_of(uplinks.begin(), uplinks.end(), [c](const shared_uplink& u) {
        return u.classes.size() > 1 && std::find(u.classes.begin(), u.classes.end(), c) != u.classes.end();
      }));
  }
}

TEST_CASE("Jobs in blocks of leaves meet at the up-links of their pod") {
  platform p = cluster(2);  // leaves of 96
  p.fabric.pod_gpus = 1152;
  p.fabric.pod_oversubscription = 4;
  const auto pods = network::uplink_level::pods;
  const auto a = range(0, 576), b = range(576, 576);
  CHECK(busiest_group(p, network::uplink_level::leaves, a) == 1);
  CHECK(busiest_group(p, pods, a) == Approx(0.5));
  const auto uplinks = uplinks_of(p, {{0, a}, {1, b}});
  REQUIRE(uplinks.size() == 5);
  for (const std::size_t i : {0, 1}) {
    CHECK(uplinks[i].level == network::uplink_level::leaves);
    CHECK(share(uplinks[i], p) == Approx(0.5));
  }
  for (const std::size_t i : {2, 3, 4}) {
    CHECK(uplinks[i].level == pods);
    CHECK(share(uplinks[i], p) == Approx(0.25));  // an eighth, of twice as many GPUs
  }
  CHECK(uplinks[4].classes == std::vector<std::int32_t>{0, 1});
  // In pods of their own each has its pod to itself.
  p.fabric.pod_gpus = 576;
  CHECK(uplinks_of(p, {{0, a}, {1, b}}).size() == 4);
}
