// Packs sequences of different lengths into the micro-batches of an update. [docs/post-training.md#packing]
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nvlsim {

/// How sequences become micro-batches. `packed`: as many as fit share a window. `padded`: each is padded to the
/// length limit. `unpadded`: each is a micro-batch of its own length. `dynamic`: the fewest micro-batches that
/// hold a rank's tokens, of about equal size and without padding.
enum class packing_kind { packed, padded, unpadded, dynamic };
inline const std::array<std::string, 4> packing_names = {"packed", "padded", "unpadded", "dynamic"};

/// Micro-batches of the fullest data-parallel rank, which the others wait for.
struct packed_batch {
  std::int64_t micro_batches = 0;  ///< of the fullest rank
  double tokens = 0;               ///< computed per micro-batch, mean
  double tokens_of_all = 0;        ///< of all sequences, without padding
  double fill = 1;                 ///< tokens of sequences over the tokens that the windows hold
};

/// Distributes sequences over `ranks`, longest first, each to the rank with the fewest tokens. Packs the sequences
/// of a rank first-fit into windows of `window` tokens. A sequence longer than the window gets its own window.
/// Takes n log n time.
packed_batch pack(std::vector<std::int64_t> lengths, std::int64_t ranks, std::int64_t window, packing_kind how);

}  // namespace nvlsim
