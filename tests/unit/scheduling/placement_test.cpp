#include <catch2/catch.hpp>
#include <vector>

#include "nvlsim/scheduling/policy.hpp"

using namespace nvlsim;

namespace {

/// Free GPUs of four racks of 18 nodes with 4 GPUs, of which the first nodes of each rack are wholly free.
std::vector<std::int16_t> racks_with_free_nodes(const std::vector<int>& free_nodes) {
  std::vector<std::int16_t> out;
  for (const int f : free_nodes)
    for (int n = 0; n < 18; ++n) out.push_back(n < f ? 4 : 0);
  return out;
}

/// Nodes that a job of `nodes` whole nodes gets, by rack.
std::vector<int> by_rack(placement_kind kind, const std::vector<int>& free_nodes, int nodes, int segment = 0) {
  const queue_cluster c{static_cast<int>(free_nodes.size()), 18, 4};
  std::vector<int> out(free_nodes.size());
  const auto taken = place_job(c, kind, {nodes, 4, segment}, racks_with_free_nodes(free_nodes));
  for (const int n : taken) ++out[static_cast<std::size_t>(n / 18)];
  return taken.empty() ? std::vector<int>{} : out;
}

int segments_in_rack(int size) {
  int taken = 0;
  while (!by_rack(placement_kind::block, {18}, size * (taken + 1), size).empty()) ++taken;
  return taken;
}

}  // namespace

TEST_CASE("A tree gives a job the fullest rack with room, and else racks from the fullest on") {
  using enum placement_kind;
  CHECK(by_rack(tree, {18, 6, 9, 3}, 6) == std::vector{0, 6, 0, 0});
  CHECK(by_rack(tree, {18, 6, 9, 3}, 7) == std::vector{0, 0, 7, 0});
  CHECK(by_rack(tree, {5, 6, 4, 3}, 10) == std::vector{3, 0, 4, 3});
  CHECK(by_rack(tree, {5, 6, 4, 3}, 19).empty());
}

TEST_CASE("Kueue takes one rack where it must, and few where it may") {
  using enum placement_kind;
  CHECK(by_rack(kueue_required, {18, 6, 9, 3}, 7) == std::vector{0, 0, 7, 0});
  CHECK(by_rack(kueue_required, {5, 6, 4, 3}, 7).empty());
  CHECK(by_rack(kueue_preferred, {5, 6, 4, 3}, 10) == std::vector{0, 6, 4, 0});
  CHECK_FALSE(can_ever_run({4, 18, 4}, kueue_required, {19, 4, 0}));
  CHECK(can_ever_run({4, 18, 4}, kueue_preferred, {19, 4, 0}));
}

TEST_CASE("Pack fills the fullest racks, spread goes round") {
  using enum placement_kind;
  CHECK(by_rack(pack, {18, 6, 9, 3}, 7) == std::vector{0, 4, 0, 3});
  CHECK(by_rack(spread, {18, 6, 9, 3}, 12) == std::vector{11, 0, 1, 0});
  CHECK(by_rack(spread, {5, 5, 5, 5}, 6) == std::vector{2, 2, 1, 1});
}

TEST_CASE("Segments strand what does not divide a rack") {
  // Of 18 nodes: 16, 8 and 4 leave 2, and 9 and 6 leave none.
  CHECK(segments_in_rack(16) * 16 == 16);
  CHECK(segments_in_rack(9) * 9 == 18);
  CHECK(segments_in_rack(8) * 8 == 16);
  CHECK(segments_in_rack(6) * 6 == 18);
  CHECK(segments_in_rack(4) * 4 == 16);
}

TEST_CASE("Each segment of a job is in one rack, in as few racks as can be") {
  using enum placement_kind;
  CHECK(by_rack(block, {16, 18, 17, 15}, 32, 16) == std::vector{16, 0, 16, 0});
  CHECK(by_rack(block, {9, 9, 9, 9}, 32, 16).empty());
  CHECK(by_rack(block, {9, 9, 9, 9}, 32, 8) == std::vector{8, 8, 8, 8});
  CHECK(by_rack(block, {18, 18, 4, 18}, 20, 8) == std::vector{16, 0, 4, 0});
  CHECK(by_rack(block, {18, 10, 18, 18}, 10, 8) == std::vector{0, 10, 0, 0});
  // Without segments a job that fits a rack is in one.
  CHECK(by_rack(block, {9, 9, 9, 9}, 10).empty());
  CHECK(by_rack(block, {18, 9, 18, 9}, 27) == std::vector{18, 9, 0, 0});
}

TEST_CASE("Small jobs share nodes and fill the fullest first") {
  const queue_cluster c{2, 2, 4};
  const std::vector<std::int16_t> free{4, 4, 4, 1};
  CHECK(place_job(c, placement_kind::tree, {1, 1, 0}, free) == std::vector{3});
  CHECK(place_job(c, placement_kind::tree, {1, 2, 0}, free) == std::vector{2});
  CHECK(place_job(c, placement_kind::spread, {1, 1, 0}, free) == std::vector{0});
}

TEST_CASE("What a job takes follows from its GPUs, its nodes and the policy") {
  const queue_cluster c{2, 18, 4};
  placement_policy p;
  batch_job j;
  j.gpus = 3;
  CHECK(demand_of(j, c, p) == job_demand{1, 3, 0});
  j.gpus = 6;
  CHECK(demand_of(j, c, p) == job_demand{2, 4, 0});
  j.nodes = 6;
  CHECK(demand_of(j, c, p) == job_demand{6, 1, 0});
  p.whole_nodes = true;
  CHECK(demand_of(j, c, p) == job_demand{6, 4, 0});
  p.segments = {{0, 1}, {32, 4}, {128, 16}};
  j.nodes = 0;
  j.gpus = 64;
  CHECK(demand_of(j, c, p) == job_demand{16, 4, 4});
  j.segment = 8;
  CHECK(demand_of(j, c, p).segment == 8);
}
