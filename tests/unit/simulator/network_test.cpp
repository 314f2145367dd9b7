// SimGrid shares the platform's ports exactly: its default model would be 3 to 8 % and 13 latencies off.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "nvlsim/network/topology.hpp"
#include "simulator/session.hpp"
#include "simulator/simgrid_zone.hpp"
#include "support/ports.hpp"

using namespace nvlsim;
namespace sg4 = simulator::compat::sg4;

namespace {

using test::exactly;

constexpr double size = 1e9, nvlink = test::nvlink_rate, nvlink_latency = 1e-6, nic_latency = 4e-6;

network::topology ports(int count) {
  std::vector<std::int64_t> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back(i);
  return network::describe(test::bare_ports(seconds::from_base(nic_latency)), gpus,
                           seconds::from_base(nvlink_latency));
}

struct message {
  sg4::Host *from, *to;
  double bytes_sent = size;
};

/// When each transfer ended; all begin at zero.
std::vector<double> send(simulator::session& s, const std::vector<message>& transfers) {
  std::vector<double> end(transfers.size());
  int payload = 0;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    sg4::Mailbox* box = sg4::Mailbox::by_name(std::to_string(i));
    const message& t = transfers[i];
    simulator::compat::add_actor(t.from, "from", [&payload, box, bytes_sent = t.bytes_sent] {
      box->put(&payload, static_cast<std::uint64_t>(bytes_sent));
    });
    simulator::compat::add_actor(t.to, "to", [&s, &end, box, i] {
      box->get<int>();
      end[i] = s.now();
    });
  }
  s.simgrid().run();
  return end;
}

}  // namespace

TEST_CASE("One transfer takes its latency and its bytes over the port's capacity") {
  simulator::session s;
  const network::zones z = network::build(s.simgrid(), ports(4));
  const std::vector<double> end =
      send(s, {{z.nvlink[0], z.nvlink[1]}, {z.fabric[2], z.fabric[3]}, {z.fabric[0], z.fabric[1], 0}});
  CHECK(end[0] == exactly(nvlink_latency + size / nvlink));
  CHECK(end[1] == exactly(nic_latency + size / test::nic_rate));
  CHECK(end[2] == exactly(nic_latency));
}

TEST_CASE("Both directions of a port run at full speed") {
  simulator::session s;
  const network::zones z = network::build(s.simgrid(), ports(2));
  for (double end : send(s, {{z.fabric[0], z.fabric[1]}, {z.fabric[1], z.fabric[0]}})) {
    CHECK(end == exactly(nic_latency + size / test::nic_rate));
  }
}

TEST_CASE("Incast of 71 ports shares the last one evenly") {
  simulator::session s;
  const network::zones z = network::build(s.simgrid(), ports(72));
  std::vector<message> all;
  for (std::size_t i = 1; i < 72; ++i) all.push_back({z.nvlink[i], z.nvlink[0]});
  for (double end : send(s, all)) CHECK(end == exactly(nvlink_latency + 71 * size / nvlink));
}

TEST_CASE("Sharing is max-min") {
  simulator::session s;
  const network::zones z = network::build(s.simgrid(), ports(5));
  // Two flows leave port 0, three enter port 4: the latter get a third of it, and the other one the rest of port
  // 0.
  const std::vector<double> end = send(s, {{z.fabric[0], z.fabric[1], 2e9},
                                           {z.fabric[0], z.fabric[4]},
                                           {z.fabric[2], z.fabric[4]},
                                           {z.fabric[3], z.fabric[4]}});
  CHECK(end[0] == exactly(nic_latency + 2e9 / (test::nic_rate * 2 / 3)));
  for (std::size_t i = 1; i < 4; ++i) CHECK(end[i] == exactly(nic_latency + 3 * size / test::nic_rate));
}

TEST_CASE("Aggregate bounds what its ports send beyond it, and leaves the rest") {
  simulator::session s;
  network::topology t = ports(6);
  const bandwidth uplinks = bandwidth::from_base(test::nic_rate);  // half of its two ports
  t.fabric.aggregates.push_back({"leaf 0", uplinks, uplinks, {0, 1}});
  const network::zones z = network::build(s.simgrid(), t);
  CHECK(z.beyond[2] == nullptr);
  const std::vector<double> end =
      send(s, {{z.beyond[0], z.fabric[2]}, {z.beyond[1], z.fabric[3]}, {z.fabric[4], z.fabric[5]}});
  CHECK(end[0] == exactly(nic_latency + 2 * size / test::nic_rate));
  CHECK(end[1] == exactly(nic_latency + 2 * size / test::nic_rate));
  CHECK(end[2] == exactly(nic_latency + size / test::nic_rate));
}

TEST_CASE("Traffic between the ports of an aggregate shares only the ports with what goes beyond") {
  simulator::session s;
  network::topology t = ports(4);
  const bandwidth uplinks = bandwidth::from_base(test::nic_rate / 4);
  t.fabric.aggregates.push_back({"leaf 0", uplinks, uplinks, {0, 1}});
  const network::zones z = network::build(s.simgrid(), t);
  // The port has three quarters left for what stays under the leaf.
  const std::vector<double> end = send(s, {{z.beyond[0], z.fabric[2]}, {z.fabric[0], z.fabric[1], 3 * size}});
  CHECK(end[0] == exactly(nic_latency + 4 * size / test::nic_rate));
  CHECK(end[1] == exactly(nic_latency + 4 * size / test::nic_rate));
}
