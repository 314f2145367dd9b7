// Prefix cache: blocks of earlier prompts, evicted least recently used first.
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

  /// Number of leading blocks of `names` that are cached.
  std::size_t hits(std::span<const name> names) const;
  /// Holds a block, cached or not. Returns whether it was absent, cached without holders, or held by others.
  enum class state { absent, idle, held };
  state hold(name n);
  /// Releases a held block, which becomes idle with its last holder. Returns whether it became idle.
  bool release(name n);
  /// Evicts the least recently used idle block and returns its name. Requires one.
  name evict();
  std::size_t idle() const { return idle_; }

 private:
  struct node {
    std::uint32_t holders = 0;
    std::uint32_t before = none, after = none;  ///< links of idle blocks, in order of use
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
