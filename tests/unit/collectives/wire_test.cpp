// Bytes through the ports of a rank, by collective and algorithm.
#include <catch2/catch.hpp>
#include <string_view>

#include "nvlsim/collectives/collectives.hpp"

using namespace nvlsim;

namespace {

constexpr bytes array = bytes::from_base(7.2e9);

network_traffic wire(collective c, communicator g, std::string_view algorithm) {
  return wire_traffic(c, array, g, algorithm);
}

void check(const port_bytes& b, double out, double in) {
  CHECK(b.out.base() == Approx(out).epsilon(1e-12).margin(0));
  CHECK(b.in.base() == Approx(in).epsilon(1e-12).margin(0));
}

}  // namespace

TEST_CASE("Rings carry the bus bytes both ways, LL twice as many") {
  const double bus = 2 * 71 * 1e8;
  check(wire(collective::all_reduce, {72, 1}, "simple").nvlink, bus, bus);
  check(wire(collective::all_reduce, {72, 1}, "ll").nvlink, 2 * bus, 2 * bus);
  check(wire(collective::all_reduce, {72, 1}, "ll128").nvlink, bus * 128 / 120, bus * 128 / 120);
  check(wire(collective::all_gather, {72, 1}, "simple").nvlink, 7.1e9, 7.1e9);
  check(wire(collective::send_recv, {2, 1}, "simple").nvlink, 7.2e9, 7.2e9);
  check(wire(collective::all_reduce, {72, 1}, "simple").nic, 0, 0);
}

TEST_CASE("Switches halve an all-reduce, and gather and scatter one way") {
  check(wire(collective::all_reduce, {72, 1}, "nvls").nvlink, 7.3e9, 7.3e9);
  check(wire(collective::all_gather, {72, 1}, "nvls").nvlink, 1e8, 7.1e9);
  check(wire(collective::reduce_scatter, {72, 1}, "nvls").nvlink, 7.1e9, 1e8);
}

TEST_CASE("Across domains each NIC carries its share of what a domain exchanges") {
  const network_traffic ring = wire(collective::all_reduce, {144, 2}, "ring");
  check(ring.nic, 7.2e9 * 2 * 143 / 144 / 72, 7.2e9 * 2 * 143 / 144 / 72);
  check(ring.nvlink, 7.2e9 * 2 * 143 / 144 * 71 / 72, 7.2e9 * 2 * 143 / 144 * 71 / 72);
  check(wire(collective::all_reduce, {144, 2}, "nvls_tree").nic, 1e8, 1e8);
  check(wire(collective::all_reduce, {288, 4}, "nvls_tree").nic, 2e8, 2e8);
  check(wire(collective::all_reduce, {288, 4}, "nvls_tree").nvlink, 7.3e9, 7.3e9);
  check(wire(collective::all_reduce, {288, 4}, "sharp").nic, 1e8, 1e8);
  check(wire(collective::all_to_all, {144, 2}, "pairwise").nic, 3.6e9, 3.6e9);
  check(wire(collective::all_to_all, {144, 2}, "pairwise").nvlink, 7.1e9 / 2, 7.1e9 / 2);
}

TEST_CASE("Ranks that are alone in their domains use only their NICs") {
  for (const char* algorithm : {"ring", "tree", "sharp"}) {
    const network_traffic t = wire(collective::all_reduce, {8, 8}, algorithm);
    INFO(algorithm);
    check(t.nvlink, 0, 0);
    CHECK(t.nic.out > bytes{});
  }
  check(wire(collective::send_recv, {2, 2}, "ring").nic, 7.2e9, 7.2e9);
}

TEST_CASE("One rank sends nothing") { check(wire(collective::all_reduce, {1, 1}, "none").nvlink, 0, 0); }
