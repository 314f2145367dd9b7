#include "nvlsim/model/attended_keys.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

namespace nvlsim {
namespace {

TEST_CASE("Keys of queries are those that a sum over the sequence gives") {
  for (const std::int64_t s : {1, 7, 64, 1000})
    for (const std::int64_t window : {1, 5, 64, 4096}) {
      const std::int64_t most = std::min(s, window);
      double pairs = 0, midpoints = 0;  // a query in the middle of its token has half a key less than itself
      for (std::int64_t q = 0; q < s; ++q) {
        pairs += static_cast<double>(std::min(q + 1, most));
        midpoints += std::min(static_cast<double>(q) + 0.5, static_cast<double>(most));
      }
      const auto n = static_cast<double>(s), w = static_cast<double>(most);
      CHECK(causal_pairs(n, w) == Approx(pairs));
      CHECK(chosen_keys(static_cast<double>(window), n) == Approx(midpoints / n).epsilon(0.002));
    }
  CHECK(chosen_keys(10, 0) == 0);
}

TEST_CASE("An indexer has nothing to select where a query sees no more keys than it takes") {
  layer_spec l;
  l.attention = attention_kind::grouped_query;
  CHECK_FALSE(attends_sparsely(l, 1 << 20));
  l.sparse_keys = 2048;
  CHECK_FALSE(attends_sparsely(l, 2048));
  CHECK(attends_sparsely(l, 2049));
  CHECK(keys_of(l, 2048).pooled == 1024);
  l.attention = attention_kind::compressed;
  CHECK(attends_sparsely(l, 16));
}

}  // namespace
}  // namespace nvlsim
