// Up-links in fidelity `flow`: what leaves a leaf shares them, what stays under it does not.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/simulator/simulation.hpp"
#include "support/plans.hpp"
#include "support/ports.hpp"

using namespace nvlsim;

namespace {

using test::both;
using test::exactly;

constexpr double gigabyte = 1e9;

/// Eight racks of 72 GPUs under leaves of 144 ports, `oversubscription` times as many down as up.
platform cluster(double oversubscription) {
  platform p = test::bare_ports();
  p.vm.gpus = 4;
  p.rack.vms = 18;
  p.racks = 8;
  p.fabric.leaf.ports = 144;
  p.fabric.oversubscription = oversubscription;
  return p;
}

/// A gigabyte each way through the NIC, `leaving` of it beyond the leaf, in the time that the slower of both
/// needs.
std::int32_t add(plan& p, double leaving, double uplink_rate) {
  const seconds t = seconds::from_base(std::max(gigabyte / test::nic_rate, gigabyte * leaving / uplink_rate));
  operation_template w{"transfer", {{part_kind::dp, "transfer", t, 1}}, {}, {}};
  w.network = {network_demand{{{}, both(gigabyte), both(gigabyte * leaving)}, {}, t}};
  return p.add_template(std::move(w));
}

/// When transfers end that run side by side on one GPU.
std::vector<double> side_by_side(const platform& p, const std::vector<double>& leaving) {
  plan all;
  plans::add_class(all, "rank");
  all.classes[0].streams.resize(leaving.size());
  const double uplink = network::uplink_of(p).base();
  for (std::size_t i = 0; i < leaving.size(); ++i)
    all.append(all.classes[0].streams[i], add(all, leaving[i], uplink), {});
  std::vector<double> out;
  const timeline t = simulate(all, p, {fidelity::flow});
  for (const auto& s : t.spans[0]) out.push_back(s.back().end_s);
  return out;
}

}  // namespace

TEST_CASE("Alone an operation takes its closed time, whatever leaves the leaf") {
  for (const double ratio : {1.0, 2.0, 8.0})
    for (const double leaving : {0.0, 0.25, 1.0}) {
      const platform p = cluster(ratio);
      const double uplink = network::uplink_of(p).base();
      CHECK(uplink == exactly(test::nic_rate / ratio));
      CHECK(side_by_side(p, {leaving}).front() == exactly(1e9 * std::max(1 / test::nic_rate, leaving / uplink)));
    }
}

TEST_CASE("What leaves the leaf shares the up-links, as it would share a NIC cut as much") {
  const platform p = cluster(8), cut = test::bare_ports({}, test::nvlink_rate, test::nic_rate / 8);
  const std::vector<double> shared = side_by_side(p, {1, 1, 1});
  plan of_cut;
  plans::add_class(of_cut, "rank");
  of_cut.classes[0].streams.resize(3);
  for (stream& s : of_cut.classes[0].streams) of_cut.append(s, add(of_cut, 1, test::nic_rate / 8), {});
  const timeline by_nic = simulate(of_cut, cut, {fidelity::flow});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(shared[i] == exactly(3 * 8e9 / test::nic_rate));
    CHECK(shared[i] == exactly(by_nic.spans[0][i].back().end_s));
  }
}

TEST_CASE("What stays under the leaf is not slowed by what crosses its up-links") {
  // The port has seven eighths left.
  const std::vector<double> ends = side_by_side(cluster(8), {1, 0});
  CHECK(ends[0] == exactly(8e9 / test::nic_rate));
  CHECK(ends[1] == exactly(1e9 / (test::nic_rate * 7 / 8)));
  CHECK(side_by_side(cluster(8), {0, 0})[0] == exactly(2e9 / test::nic_rate));
}

TEST_CASE("A non-blocking fabric is its ports alone") {
  for (const double e : side_by_side(cluster(1), {1, 0})) CHECK(e == exactly(2e9 / test::nic_rate));
}

TEST_CASE("Broken spines and collisions of routes narrow the up-links") {
  platform p = cluster(1);
  p.racks = 64;
  p.fabric.failed_spines = 16;  // of 32
  CHECK(network::uplink_of(p).base() == exactly(test::nic_rate / 2));
  CHECK(side_by_side(p, {1, 1})[0] == exactly(4e9 / test::nic_rate));
  p.fabric.failed_spines = 0;
  p.fabric.routing = fabric_routing::hashed;
  CHECK(side_by_side(p, {1, 1})[0] == exactly(8e9 / test::nic_rate));
}

TEST_CASE("Classes share the up-links that a plan names, each in its own direction") {
  const platform p = cluster(8);
  const bandwidth one = bandwidth::from_base(test::nic_rate / 4);
  const auto ends = [&](std::vector<shared_uplink> uplinks) {
    plan all;
    for (const char* name : {"a", "b", "c"}) plans::add_class(all, name);
    for (rank_class& c : all.classes) all.append(c.streams[0], add(all, 1, one.base()), {});
    all.uplinks = std::move(uplinks);
    std::vector<double> out;
    const timeline t = simulate(all, p, {fidelity::flow});
    for (const auto& c : t.spans) out.push_back(c[0].back().end_s);
    return out;
  };
  const std::vector<double> apart = ends({{"a", one, {0}}, {"b", one, {1}}});
  for (const double e : apart) CHECK(e == exactly(4e9 / test::nic_rate));
  const std::vector<double> together = ends({{"a", one, {0}}, {"b", one, {1}}, {"both", one, {0, 1}}});
  CHECK(together[0] == exactly(8e9 / test::nic_rate));
  CHECK(together[1] == exactly(8e9 / test::nic_rate));
  CHECK(together[2] == exactly(4e9 / test::nic_rate));
  // Three GPUs of a and one of b: each has a quarter, until b's are all through.
  const std::vector<double> uneven = ends({{"a", one, {0}}, {"b", one, {1}}, {"both", one, {0, 0, 0, 1}}});
  CHECK(uneven[0] == exactly(16e9 / test::nic_rate));
  CHECK(uneven[1] == exactly(16e9 / test::nic_rate));
}

TEST_CASE("An exchange inside an operation flows once another class comes to its up-links") {
  const platform p = cluster(8);
  plan all;
  for (const char* name : {"a", "b"}) plans::add_class(all, name);
  const bandwidth one = bandwidth::from_base(test::nic_rate / 4);
  all.uplinks = {{"a", one, {0}}, {"b", one, {1}}, {"both", one, {0, 1}}};
  // 10 ms of computation, then a gigabyte that takes 40 ms alone.
  operation_template w{
      "pass", {{part_kind::gemm, "gemm", 0.01_s, 1}, {part_kind::ep, "exchange", 0.04_s, 1}}, {}, {}};
  w.network = {network_demand{{{}, both(1e9), both(1e9)}, {}, 0.05_s, 0.01_s}};
  all.append(all.classes[0].streams[0], all.add_template(std::move(w)), {});
  all.append(all.classes[1].streams[0], plans::add_template(all, "before", 30e-3), {});
  all.append(all.classes[1].streams[0], add(all, 1, one.base()), {});
  const timeline t = simulate(all, p, {fidelity::flow});
  // Half of its bytes are left when the other comes; it has half of the up-links for them.
  CHECK(t.spans[0][0][0].end_s == Approx(70e-3).epsilon(1e-6));
  CHECK(t.spans[1][0][1].end_s == Approx(90e-3).epsilon(1e-6));
}

namespace {

/// A hundred and twenty-eight racks under leaves of 96 down and 48 up, in pods of 16 racks whose spines have
/// `ratio` times as many links down as up.
platform cluster_of_pods(double ratio) {
  platform p = cluster(2);
  p.racks = 128;
  p.fabric.pod_gpus = 1152;
  p.fabric.pod_oversubscription = ratio;
  return p;
}

/// What of a gigabyte leaves the leaf, and of that the pod.
struct share_leaving {
  double leaf = 0, pod = 0;
};

/// When such transfers end that run side by side on one GPU and each take, alone, what the slowest link needs.
std::vector<double> side_by_side(const platform& p, const std::vector<share_leaving>& leaving) {
  plan all;
  plans::add_class(all, "rank");
  all.classes[0].streams.resize(leaving.size());
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    const auto time_at = [&](double share, network::uplink_level level) {
      return gigabyte * share / network::uplink_of(p, level).base();
    };
    const seconds t = seconds::from_base(
        std::max({gigabyte / test::nic_rate, time_at(leaving[i].leaf, network::uplink_level::leaves),
                  time_at(leaving[i].pod, network::uplink_level::pods)}));
    operation_template w{"transfer", {{part_kind::dp, "transfer", t, 1}}, {}, {}};
    w.network = {network_demand{
        {{}, both(gigabyte), both(gigabyte * leaving[i].leaf), both(gigabyte * leaving[i].pod)}, {}, t}};
    all.append(all.classes[0].streams[i], all.add_template(std::move(w)), {});
  }
  std::vector<double> out;
  const timeline t = simulate(all, p, {fidelity::flow});
  for (const auto& s : t.spans[0]) out.push_back(s.back().end_s);
  return out;
}

}  // namespace

TEST_CASE("What leaves a pod shares the up-links of its leaf and of its pod") {
  constexpr double t = gigabyte / test::nic_rate;
  const platform p = cluster_of_pods(4);
  CHECK(network::uplink_of(p, network::uplink_level::leaves).base() == exactly(test::nic_rate / 2));
  CHECK(network::uplink_of(p, network::uplink_level::pods).base() == exactly(test::nic_rate / 8));
  CHECK(side_by_side(p, {share_leaving{1, 1}})[0] == exactly(8 * t));
  // Two share the pod's. One that stays in the pod has what they leave of the leaf's half, one under the leaf what
  // all leave of the port.
  const std::vector<double> ends = side_by_side(p, {{1, 1}, {1, 1}, {1, 0}, {0, 0}});
  CHECK(ends[0] == exactly(16 * t));
  CHECK(ends[1] == exactly(16 * t));
  CHECK(ends[2] == exactly(t / 0.375));
  CHECK(ends[3] == exactly(2 * t));
  // Half of a transfer leaves the leaf, and half of that the pod.
  CHECK(side_by_side(p, {share_leaving{0.5, 0.25}})[0] == exactly(2 * t));
}

TEST_CASE("Traffic that stays in a pod does not feel the pod's up-links") {
  for (const double ratio : {1.0, 4.0, 64.0}) {
    CHECK(side_by_side(cluster_of_pods(ratio), {share_leaving{1, 0}})[0] == exactly(2e9 / test::nic_rate));
    CHECK(side_by_side(cluster_of_pods(ratio), {share_leaving{1, 0}, {1, 0}})[1] == exactly(4e9 / test::nic_rate));
  }
}

TEST_CASE("A slower upper level makes nothing faster, and one that does not limit changes nothing") {
  const std::vector<std::vector<share_leaving>> sets = {
      {{1, 1}}, {{1, 1}, {1, 0}}, {{1, 0.5}, {0.5, 0.25}, {0, 0}}, {{0.3, 0.1}, {1, 0.9}, {0.7, 0.7}, {0.2, 0}}};
  for (const std::vector<share_leaving>& set : sets) {
    const std::vector<double> without = side_by_side(cluster(2), set);
    double before = 0;
    for (const double ratio : {1.0, 1.5, 2.0, 4.0, 16.0}) {
      const std::vector<double> ends = side_by_side(cluster_of_pods(ratio), set);
      const double last = *std::max_element(ends.begin(), ends.end());
      CHECK(last >= before * (1 - 1e-9));
      before = last;
      if (ratio > 1) continue;
      for (std::size_t i = 0; i < ends.size(); ++i) CHECK(ends[i] == exactly(without[i]));
    }
  }
}

TEST_CASE("Classes under different leaves meet at the up-links of their pod") {
  const platform p = cluster_of_pods(4);
  const bandwidth leaf = bandwidth::from_base(test::nic_rate / 2), pod = bandwidth::from_base(test::nic_rate / 8);
  const auto pods = network::uplink_level::pods;
  plan all;
  for (const char* name : {"a", "b"}) plans::add_class(all, name);
  operation_template w{"transfer", {{part_kind::dp, "transfer", seconds::from_base(1e9 / pod.base()), 1}}, {}, {}};
  w.network = {network_demand{{{}, both(1e9), both(1e9), both(1e9)}, {}, w.parts[0].duration}};
  const std::int32_t sends = all.add_template(std::move(w));
  for (rank_class& c : all.classes) all.append(c.streams[0], sends, {});
  all.uplinks = {{"a", leaf, {0}},
                 {"b", leaf, {1}},
                 {"pod of a", pod, {0}, pods},
                 {"pod of b", pod, {1}, pods},
                 {"of both", pod, {0, 1}, pods}};
  const timeline apart = simulate(all, p, {fidelity::flow});
  for (const auto& c : apart.spans) CHECK(c[0][0].end_s == exactly(16e9 / test::nic_rate));
  // Three GPUs of a and one of b: each has a quarter of what four have.
  all.uplinks.back().classes = {0, 0, 0, 1};
  all.uplinks.back().capacity = pod * 2;
  for (const auto& c : simulate(all, p, {fidelity::flow}).spans)
    CHECK(c[0][0].end_s == exactly(16e9 / test::nic_rate));
}
