// The prefix cache against a list of blocks by use, and how its work grows.
#include "serving/prefix_cache.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

namespace nvlsim {
namespace {

using name = prefix_cache::name;

/// What a prefix cache does, written without a table.
struct plain_cache {
  std::map<name, int> holders;
  std::vector<name> by_use;  ///< idle blocks, the least recently used first

  prefix_cache::state hold(name n) {
    const auto at = holders.find(n);
    if (at == holders.end()) return holders[n] = 1, prefix_cache::state::absent;
    if (at->second++ > 0) return prefix_cache::state::held;
    std::erase(by_use, n);
    return prefix_cache::state::idle;
  }
  bool release(name n) {
    if (--holders.at(n) > 0) return false;
    by_use.push_back(n);
    return true;
  }
  name evict() {
    const name n = by_use.front();
    by_use.erase(by_use.begin());
    holders.erase(n);
    return n;
  }
};

/// Names that collide under simple hashes, too.
std::vector<std::vector<name>> kinds_of_names(std::size_t count) {
  std::mt19937_64 g(7);
  std::vector<std::vector<name>> out(4);
  for (std::size_t i = 0; i < count; ++i) {
    out[0].push_back(g());
    out[1].push_back(i);
    out[2].push_back(i << 32);
    out[3].push_back(i * 0x100000001ULL);
  }
  return out;
}

TEST_CASE("A prefix cache holds, releases and evicts as a list of blocks by use") {
  for (const std::vector<name>& names : kinds_of_names(300)) {
    prefix_cache cache;
    plain_cache plain;
    std::vector<name> held;
    std::mt19937_64 g(11);
    for (int i = 0; i < 20'000; ++i) {
      const name n = names[g() % names.size()];
      switch (g() % 5) {
        case 0:
        case 1:
          REQUIRE(cache.hold(n) == plain.hold(n));
          held.push_back(n);
          break;
        case 2:
        case 3:
          if (held.empty()) break;
          std::swap(held[g() % held.size()], held.back());
          REQUIRE(cache.release(held.back()) == plain.release(held.back()));
          held.pop_back();
          break;
        default:
          if (!plain.by_use.empty()) REQUIRE(cache.evict() == plain.evict());
      }
      REQUIRE(cache.idle() == plain.by_use.size());
      REQUIRE(cache.hits({&n, 1}) == plain.holders.count(n));
      REQUIRE(cache.held({&n, 1}) == (plain.holders.contains(n) && plain.holders[n] > 0 ? 1U : 0U));
    }
  }
}

TEST_CASE("A prefix cache looks at a few places for a block, however many it has") {
  for (const std::size_t count : {1'000U, 30'000U, 300'000U})
    for (const std::vector<name>& names : kinds_of_names(count)) {
      prefix_cache cache;
      std::uint64_t asked = 0;
      for (int round = 0; round < 2; ++round) {
        for (const name n : names) cache.hold(n);
        CHECK(cache.hits(names) == count);
        for (const name n : names) cache.release(n);
        for (std::size_t i = 0; i < count / 2; ++i) cache.evict();
        asked += 3 * count + count / 2;
      }
      INFO(count << " blocks");
      CHECK(cache.looked_at() < 4 * asked);
    }
}

}  // namespace
}  // namespace nvlsim
