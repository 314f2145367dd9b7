// Prefix cache: blocks of earlier prompts in HBM and in the tiers beyond it, evicted least recently used first.
// [docs/models-and-assumptions.md#inference-prefix-cache, #inference-cache-tiers]
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nvlsim/serving/server.hpp"

namespace nvlsim {

class prefix_cache {
 public:
  using name = std::uint64_t;

  /// Number of leading blocks of `names` that are cached.
  std::size_t hits(std::span<const name> names) const;
  /// Number of cached blocks among `names` that someone holds.
  std::size_t held(std::span<const name> names) const;
  /// Holds a block, cached or not. Returns whether it was absent, cached without holders, or held by others.
  enum class state { absent, idle, held };
  state hold(name n);
  /// Releases a held block, which becomes idle with its last holder. Returns whether it became idle.
  bool release(name n);
  /// Evicts the least recently used idle block and returns its name. Requires one.
  name evict();
  std::size_t idle() const { return idle_; }
  /// Places of the table that were looked at so far.
  std::uint64_t looked_at() const { return looked_at_; }

 private:
  struct node {
    std::uint32_t holders = 0;
    std::uint32_t before = none, after = none;  ///< links of idle blocks, in order of use
    name id = 0;
  };
  static constexpr std::uint32_t none = 0xffffffff;
  void unlink(std::uint32_t i);
  void append(std::uint32_t i);
  std::size_t home_of(name n) const { return static_cast<std::size_t>((n * 0x9e3779b97f4a7c15ULL) >> shift_); }
  /// The place of a block in the table, or the free one where it would be.
  std::size_t place_of(name n) const {
    for (std::size_t at = home_of(n);; at = (at + 1) & (table_.size() - 1)) {
      ++looked_at_;
      if (table_[at] == none || nodes_[table_[at]].id == n) return at;
    }
  }
  void grow();
  void forget(name n);

  std::vector<std::uint32_t> table_ = std::vector<std::uint32_t>(16, none);  ///< nodes by name, half of it free
  int shift_ = 60;                                                           ///< 64 less the bits of a place
  std::size_t known_ = 0;
  mutable std::uint64_t looked_at_ = 0;
  std::vector<node> nodes_;
  std::vector<std::uint32_t> unused_;
  std::uint32_t oldest_ = none, newest_ = none;
  std::size_t idle_ = 0;
};

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
