// Blocks of finished prompts that later prompts may begin with, least recently used first to go.
// [docs/models-and-assumptions.md#inference-prefix-cache]
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace nvlsim {

class prefix_cache {
 public:
  using name = std::uint64_t;

  /// Blocks of `names`, from the first, that are cached.
  std::size_t hits(std::span<const name> names) const;
  /// Takes hold of a block, cached or not. Returns whether it was held by nobody but the cache, or by others too.
  enum class state { absent, idle, held };
  state hold(name n);
  /// Lets go of a block held before; with the last holder it becomes idle. Returns whether it did.
  bool release(name n);
  /// Forgets the idle block used longest ago. Requires one.
  void evict();
  std::size_t idle() const { return idle_; }

 private:
  struct node {
    std::uint32_t holders = 0;
    std::uint32_t before = none, after = none;  ///< in the order of use, of idle ones
    name id = 0;
  };
  static constexpr std::uint32_t none = 0xffffffff;
  void unlink(std::uint32_t i);
  void append(std::uint32_t i);

  std::unordered_map<name, std::uint32_t> known_;
  std::vector<node> nodes_;
  std::vector<std::uint32_t> unused_;
  std::uint32_t oldest_ = none, newest_ = none;
  std::size_t idle_ = 0;
};

}  // namespace nvlsim
