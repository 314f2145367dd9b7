#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "nvlsim/post_training/packing.hpp"
#include "nvlsim/post_training/response_lengths.hpp"

namespace nvlsim {
namespace {

double mean_of(const std::vector<std::int64_t>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

TEST_CASE("Responses have the mean that is published of them, after the cut") {
  // Mean and limit of published NeMo RL runs: DeepSeek-V3, Qwen3-30B-A3B, Qwen3-235B.
  for (const auto& [mean, max] : {std::pair{701.0, 1536}, {3203.0, 4096}, {5698.0, 8192}}) {
    const response_lengths l{mean, max, 10, 0.5};
    CHECK(mean_after_cut(median_before_cut(l), log_deviation(l), max) == Approx(mean).epsilon(1e-9));
    const auto sampled = sample_responses(l, 4000, 8, 1);
    CHECK(mean_of(sampled) == Approx(mean).epsilon(0.02));
    CHECK(*std::max_element(sampled.begin(), sampled.end()) == max);
    const auto cut = std::count(sampled.begin(), sampled.end(), std::int64_t{max});
    CHECK(static_cast<double>(cut) / 32000 == Approx(share_cut(l)).margin(0.02));
  }
}

TEST_CASE("The 99th percentile is the tail times the median where nothing is cut") {
  auto sampled = sample_responses({500, 1 << 30, 10, 0}, 100'000, 1, 7);
  std::sort(sampled.begin(), sampled.end());
  CHECK(static_cast<double>(sampled[99'000]) / static_cast<double>(sampled[50'000]) == Approx(10).epsilon(0.05));
}

TEST_CASE("Samples of a prompt have the stated share of the variance in common") {
  for (const double together : {0.0, 0.4, 1.0}) {
    const auto sampled = sample_responses({500, 1 << 30, 10, together}, 20'000, 2, 3);
    const double deviation = std::log(10.0) / 2.326348, middle = std::log(median_before_cut({500, 1 << 30, 10}));
    double product = 0;
    for (std::size_t i = 0; i < sampled.size(); i += 2)
      product += (std::log(static_cast<double>(sampled[i])) - middle) *
                 (std::log(static_cast<double>(sampled[i + 1])) - middle);
    CHECK(product / 20'000 / (deviation * deviation) == Approx(together).margin(0.03));
  }
  CHECK(sample_responses({500, 4096}, 10, 4, 5) == sample_responses({500, 4096}, 10, 4, 5));
  CHECK(sample_responses({500, 4096}, 10, 4, 5) != sample_responses({500, 4096}, 10, 4, 6));
}

TEST_CASE("Equal responses need no tail") {
  const auto sampled = sample_responses({100, 200, 1, 0}, 3, 2, 1);
  CHECK(sampled == std::vector<std::int64_t>(6, 100));
}

TEST_CASE("Packing fills windows, and the fullest rank counts") {
  // By hand: 4 sequences of 3 and 4 of 1 are 4 windows of 4, two for each of 2 ranks.
  const packed_batch p = pack({3, 1, 3, 1, 3, 1, 3, 1}, 2, 4, packing_kind::packed);
  CHECK(p.micro_batches == 2);
  CHECK(p.tokens == 4);
  CHECK(p.fill == Approx(1));
  const packed_batch padded = pack({3, 1, 3, 1, 3, 1, 3, 1}, 2, 4, packing_kind::padded);
  CHECK(padded.micro_batches == 4);
  CHECK(padded.fill == Approx(0.5));
  const packed_batch own = pack({3, 1, 3, 1, 3, 1, 3, 1}, 2, 4, packing_kind::unpadded);
  CHECK(own.micro_batches == 4);
  CHECK(own.tokens == Approx(2));
  // One long sequence keeps its rank busy while the others wait.
  CHECK(pack({4, 1, 1}, 3, 4, packing_kind::packed).fill == Approx(0.5));
}

TEST_CASE("Dynamic micro-batches share out the tokens of the fullest rank") {
  const packed_batch p = pack({3, 1, 3, 1, 3, 1, 3, 1}, 2, 5, packing_kind::dynamic);
  CHECK(p.micro_batches == 2);  // 8 tokens a rank, in windows of 5
  CHECK(p.tokens == Approx(4));
  CHECK(p.fill == Approx(1));
  const packed_batch uneven = pack({4, 1, 1}, 3, 4, packing_kind::dynamic);
  CHECK(uneven.tokens == Approx(4));
  CHECK(uneven.fill == Approx(0.5));
}

TEST_CASE("A longer window never takes more micro-batches, nor do more ranks") {
  const auto lengths = sample_responses({3000, 4096}, 64, 8, 2);
  std::int64_t before = 1 << 20;
  for (const std::int64_t window : {4096, 8192, 16384, 32768}) {
    const auto now = pack(lengths, 8, window, packing_kind::packed);
    CHECK(now.micro_batches <= before);
    CHECK(now.fill <= 1);
    before = now.micro_batches;
  }
  for (const std::int64_t ranks : {1, 2, 4, 8, 16})
    CHECK(pack(lengths, 2 * ranks, 4096, packing_kind::packed).micro_batches <=
          pack(lengths, ranks, 4096, packing_kind::packed).micro_batches);
}

}  // namespace
}  // namespace nvlsim
