#include "nvlsim/post_training/packing.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace nvlsim {
namespace {

/// Windows that sequences take, the longest first: each goes into the fullest window that has room for it.
std::int64_t windows_of(const std::vector<std::int64_t>& longest_first, std::int64_t window) {
  std::priority_queue<std::int64_t> room;  // of open windows
  std::int64_t windows = 0;
  for (const std::int64_t length : longest_first) {
    if (!room.empty() && room.top() >= length) {
      const std::int64_t left = room.top() - length;
      room.pop();
      if (left > 0) room.push(left);
      continue;
    }
    ++windows;
    if (length < window) room.push(window - length);
  }
  return windows;
}

/// Without padding: the rank with the most tokens decides, in equal micro-batches.
void share_out(packed_batch& out, std::int64_t max_tokens, std::int64_t ranks, std::int64_t window) {
  out.micro_batches = std::max<std::int64_t>(1, (max_tokens + window - 1) / window);
  out.tokens = static_cast<double>(max_tokens) / static_cast<double>(out.micro_batches);
  out.fill = out.tokens_of_all / (static_cast<double>(ranks * out.micro_batches) * out.tokens);
}

}  // namespace

packed_batch pack(std::vector<std::int64_t> lengths, std::int64_t ranks, std::int64_t window, packing_kind how) {
  packed_batch out;
  out.tokens_of_all = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  if (lengths.empty() || ranks < 1 || window < 1) return out;
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  using load = std::pair<std::int64_t, std::int64_t>;  // tokens, rank
  std::priority_queue<load, std::vector<load>, std::greater<>> least;
  for (std::int64_t r = 0; r < ranks; ++r) least.emplace(0, r);
  std::vector<std::vector<std::int64_t>> of_rank(static_cast<std::size_t>(ranks));
  for (const std::int64_t length : lengths) {
    auto [tokens, rank] = least.top();
    least.pop();
    // Padded sequences cost the same, so ranks get equal numbers of them.
    least.emplace(tokens + (how == packing_kind::padded ? 1 : length), rank);
    of_rank[static_cast<std::size_t>(rank)].push_back(length);
  }
  if (how == packing_kind::dynamic) {
    std::int64_t most = 0;
    for (const std::vector<std::int64_t>& mine : of_rank)
      most = std::max(most, std::accumulate(mine.begin(), mine.end(), std::int64_t{0}));
    share_out(out, most, ranks, window);
    return out;
  }
  for (const std::vector<std::int64_t>& mine : of_rank) {
    const auto count = static_cast<std::int64_t>(mine.size());
    out.micro_batches =
        std::max(out.micro_batches, how == packing_kind::packed ? windows_of(mine, window) : count);
  }
  const double slots = static_cast<double>(ranks) * static_cast<double>(out.micro_batches);
  const double each = static_cast<double>(how == packing_kind::unpadded ? 0 : window);
  out.tokens = how == packing_kind::unpadded ? out.tokens_of_all / slots : each;
  out.fill = out.tokens_of_all / (slots * out.tokens);
  return out;
}

}  // namespace nvlsim
