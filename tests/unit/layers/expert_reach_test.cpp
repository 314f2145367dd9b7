#include "nvlsim/layers/expert_reach.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <vector>

using namespace nvlsim;
using Catch::Detail::Approx;

namespace {

moe_spec experts_of(std::int64_t experts, std::int64_t top_k, std::int64_t groups = 1,
                    std::int64_t top_groups = 1) {
  moe_spec e;
  e.experts = experts, e.top_k = top_k, e.groups = groups, e.top_groups = top_groups;
  return e;
}

/// Mean share of the ranks with `own` experts each that a token reaches, as a router draws: groups, then experts
/// of theirs, none twice.
double sampled(const moe_spec& e, std::int64_t own) {
  std::mt19937_64 source(7);
  std::vector<std::int64_t> groups(static_cast<std::size_t>(e.groups));
  std::iota(groups.begin(), groups.end(), 0);
  const std::int64_t each = e.experts / e.groups;
  std::size_t reached = 0;
  constexpr int tokens = 10'000;
  for (int t = 0; t < tokens; ++t) {
    std::shuffle(groups.begin(), groups.end(), source);
    std::vector<std::int64_t> candidates;
    for (std::int64_t g = 0; g < e.top_groups; ++g)
      for (std::int64_t i = 0; i < each; ++i) candidates.push_back(groups[static_cast<std::size_t>(g)] * each + i);
    std::shuffle(candidates.begin(), candidates.end(), source);
    std::set<std::int64_t> ranks;
    for (std::int64_t i = 0; i < e.top_k; ++i) ranks.insert(candidates[static_cast<std::size_t>(i)] / own);
    reached += ranks.size();
  }
  return static_cast<double>(reached) / tokens * static_cast<double>(own) / static_cast<double>(e.experts);
}

}  // namespace

TEST_CASE("A router without groups reaches a rank as often as draws do") {
  const moe_spec e = experts_of(128, 8);
  for (const std::int64_t own : {1, 8, 16, 64})
    CHECK(reach_of(e, expert_choice::random, static_cast<double>(own) / 128) ==
          Approx(sampled(e, own)).epsilon(0.01));
  CHECK(reach_of(e, expert_choice::random, 1) == 1);
  const double all = reach_of(e, expert_choice::random, 1.0 / 8);
  CHECK(reach_of(e, expert_choice::random, 1.0 / 8, 0.5) == Approx(1 - std::sqrt(1 - all)));  // half are dropped
}

TEST_CASE("A router with groups reaches ranks and domains as often as draws do") {
  const moe_spec e = experts_of(256, 8, 8, 4);
  // Ranks of 4 and 8 experts, domains of a group, of two and of four.
  for (const std::int64_t own : {4, 8, 32, 64, 128})
    CHECK(reach_of(e, expert_choice::random, static_cast<double>(own) / 256) ==
          Approx(sampled(e, own)).epsilon(0.01));
  // Domains of a group each: at most four of the eight, where a router without groups would reach 5.25.
  const double domains = 8 * reach_of(e, expert_choice::random, 1.0 / 8);
  CHECK(domains == Approx(4 * (1 - std::pow(3.0 / 4, 8))).epsilon(0.03));
  CHECK(domains < 4);
  CHECK(8 * reach_of(experts_of(256, 8), expert_choice::random, 1.0 / 8) > 5.2);
}

TEST_CASE("More experts are reached more often, between whole groups too") {
  const moe_spec e = experts_of(256, 8, 8, 4);
  double before = 0;
  for (int own = 1; own <= 256; ++own) {
    const double reached = reach_of(e, expert_choice::random, own / 256.0);
    CHECK(reached >= before);
    CHECK(reached <= 1);
    before = reached;
  }
  CHECK(before == 1);
}

TEST_CASE("Experts that are dealt out in turn reach the ranks that hold a run of them") {
  for (const auto& [experts, top_k] : {std::pair<std::int64_t, std::int64_t>{256, 8}, {128, 8}, {96, 6}}) {
    const moe_spec e = experts_of(experts, top_k);
    for (const std::int64_t own : {2, 4, 8, 16, 32}) {
      if (experts % own != 0) continue;
      const std::int64_t round = std::lcm(experts, top_k) / top_k, ranks = experts / own;
      std::int64_t reached = 0;  // ranks, by the tokens of a round
      for (std::int64_t token = 0; token < round; ++token)
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          bool hit = false;
          for (std::int64_t i = 0; i < top_k; ++i) hit |= (token * top_k + i) % experts / own == rank;
          reached += hit;
        }
      CHECK(reach_of(e, expert_choice::in_turn, static_cast<double>(own) / static_cast<double>(experts)) ==
            Approx(static_cast<double>(reached) / static_cast<double>(round * ranks)));
    }
  }
}
