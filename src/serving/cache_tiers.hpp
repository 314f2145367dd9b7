// KV caches beyond a worker's HBM: blocks of prompts in tiers, the fastest first.
// [docs/models-and-assumptions.md#inference-cache-tiers]
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nvlsim/serving/server.hpp"
#include "serving/prefix_cache.hpp"

namespace nvlsim {

/// A store of blocks, the least recently used of which go first.
class block_store {
 public:
  explicit block_store(std::size_t capacity) : capacity_(capacity) {}

  bool has(prefix_cache::name n) const { return known_.hits({&n, 1}) == 1; }
  /// Stores a block, or marks it as used. Appends what has to go.
  void put(prefix_cache::name n, std::vector<prefix_cache::name>& gone);
  std::size_t blocks() const { return known_.idle(); }

 private:
  std::size_t capacity_;
  prefix_cache known_;
};

/// The tiers that one worker sees: its own and those of all.
class cache_tiers {
 public:
  cache_tiers(const std::vector<tier_settings>& tiers, std::vector<std::shared_ptr<block_store>> stores)
      : tiers_(&tiers), stores_(std::move(stores)) {}

  /// How many of the leading blocks are in a tier.
  std::size_t hits(std::span<const prefix_cache::name> names) const;
  /// Marks blocks as used and returns the seconds to fetch them. Adds the blocks from each tier to `from`.
  /// Requires that all are in a tier.
  double fetch(std::span<const prefix_cache::name> names, std::vector<std::int64_t>& from);
  /// A block has left HBM.
  void evicted(prefix_cache::name n);
  /// A block has been computed.
  void computed(prefix_cache::name n);

 private:
  void put(std::size_t tier, prefix_cache::name n);

  const std::vector<tier_settings>* tiers_;
  std::vector<std::shared_ptr<block_store>> stores_;
};

}  // namespace nvlsim
