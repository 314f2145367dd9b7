// Sequences of different lengths in the micro-batches of an update. [docs/post-training.md#packing]
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nvlsim {

/// How sequences become micro-batches. `packed`: as many as fit share a window. `padded`: each is filled up to the
/// limit of lengths. `unpadded`: each is a micro-batch of its own length. `dynamic`: as few micro-batches as hold
/// the tokens of a rank, all of about the same size and none filled up.
enum class packing_kind { packed, padded, unpadded, dynamic };
inline const std::array<std::string, 4> packing_names = {"packed", "padded", "unpadded", "dynamic"};

/// Micro-batches of the data-parallel rank that has the most, which the others wait for.
struct packed_batch {
  std::int64_t micro_batches = 0;  ///< of the fullest rank
  double tokens = 0;               ///< computed in each of them, mean
  double tokens_of_all = 0;        ///< of all sequences, without padding
  double fill = 1;                 ///< tokens of sequences over those that the ranks have windows for
};

/// Spreads sequences over `ranks`, the longest first and each to the rank with the fewest tokens, and packs those
/// of a rank first-fit into windows of `window` tokens. A sequence longer than the window has one of its own.
/// Takes time in n log n.
packed_batch pack(std::vector<std::int64_t> lengths, std::int64_t ranks, std::int64_t window, packing_kind how);

}  // namespace nvlsim
