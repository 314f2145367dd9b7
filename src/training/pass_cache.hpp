// Passes that layouts of one training job share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "training/gradient_buckets.hpp"

namespace nvlsim {

/// Key: everything that the price of a pass depends on within a job. Not the chunks, the order of passes or the
/// sizes of the stages, and the sharding only under FSDP. A schedule counts by its recipe: what it keeps
/// for offloading, and what it sends to experts.
using pass_key = std::array<std::int64_t, 18>;
struct pass_key_hash {
  std::size_t operator()(const pass_key& k) const {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const std::int64_t x : k) h = (h ^ static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15, h ^= h >> 29;
    return static_cast<std::size_t>(h);
  }
};
/// Of all passes of a layout.
pass_key key_of(const training_workload& w);

/// Passes through layers, the embedding and the LM head of one job. Thread-safe.
class pass_cache {
 public:
  static constexpr std::int64_t embedding = -1, head = -2;

  /// The pass `what` through a kind of layer, `embedding` or `head`; `make` prices it when it is not known.
  std::shared_ptr<const costed_parts> pass(const training_context& c, std::int64_t kind, pass_kind what,
                                           bool paired, const std::function<costed_parts()>& make);
  /// `kinds_of`. Requires that no layout recomputes only some layers.
  layer_kinds kinds(const model& m, const training_workload& w);
  /// `kernels_for`, looked up once.
  std::shared_ptr<const kernel_profile> kernels(const stack& s, const gpu_spec& gpu);
  /// Number of passes priced so far.
  std::size_t priced() const;

 private:
  static constexpr std::size_t parts = 32, max_passes_of_part = 512;  ///< about 3 kB each
  struct part {
    mutable std::mutex using_it;
    std::unordered_map<pass_key, std::shared_ptr<const costed_parts>, pass_key_hash> known;
    std::size_t priced = 0;
  };
  std::array<part, parts> parts_;
  std::mutex looking_up_;
  std::optional<layer_kinds> kinds_;
  std::shared_ptr<const kernel_profile> kernels_;
};

}  // namespace nvlsim
