// Experts after dispatch, and the loads they get.
#include <catch2/catch.hpp>

#include "unit/compute/support.hpp"

namespace nvlsim {
namespace {

const moe_params& experts(const char* family) { return test::blackwell().moe.at(family); }

moe_shape shape(double tokens, const expert_load& load) {
  return {.tokens = tokens, .local_experts = 8, .hidden = 7168, .inter = 2048, .gated = true, .load = load};
}

TEST_CASE("Balanced load shares pairs equally") {
  const expert_load l = balanced_load({.tokens = 1024, .topk = 8, .experts = 256, .ranks = 32});
  CHECK(l.pairs == Approx(256));  // 1024 x 8 / 32
  CHECK(l.active == 8);
  CHECK(l.tiles[0] == 8 * 2);  // 32 tokens each in tiles of 16
  CHECK(l.tiles[3] == 8);
}

TEST_CASE("Balanced load of few tokens leaves experts without any") {
  const expert_load l = balanced_load({.tokens = 4, .topk = 1, .experts = 256, .ranks = 2});
  CHECK(l.active == 2);
  CHECK(l.pairs == 2);
}

TEST_CASE("No tokens load no expert") {
  CHECK(balanced_load({.tokens = 0, .topk = 8, .experts = 8, .ranks = 1}).pairs == 0);
  CHECK(skewed_load({.tokens = 0, .topk = 8, .experts = 8, .ranks = 1}, 1.2).pairs == 0);
  CHECK(moe_cost(test::gb200(), experts("deepgemm_fp8_block"), shape(0, {})).time.base() == 0);
}

TEST_CASE("Skewed load is the same for the same seed") {
  const expert_routing r{.tokens = 4096, .topk = 8, .experts = 256, .ranks = 16};
  CHECK(skewed_load(r, 1.2, 12, 7).pairs == skewed_load(r, 1.2, 12, 7).pairs);
  CHECK(skewed_load(r, 1.2, 12, 7).pairs != skewed_load(r, 1.2, 12, 8).pairs);
}

// Exponent 1.2, 256 experts, top 8: 1.6 to 1.8 at 8 ranks, 4.3 to 6.5 at 64, from 1,024 to 16,384 tokens.
TEST_CASE("Skewed load fills one rank more than the others") {
  for (const auto& [ranks, low, high] : {std::tuple{8.0, 1.4, 2.0}, std::tuple{64.0, 3.8, 7.0}}) {
    const expert_routing r{.tokens = 4096, .topk = 8, .experts = 256, .ranks = ranks};
    const double ratio = skewed_load(r, 1.2, 40).pairs / balanced_load(r).pairs;
    CAPTURE(ranks, ratio);
    CHECK(ratio > low);
    CHECK(ratio < high);
  }
}

TEST_CASE("Few skewed tokens fall on few experts, and none is lost") {
  // One token of four copies: the fullest of 16 ranks of 8 experts has hardly more than one of them.
  const expert_load one = skewed_load({.tokens = 1, .topk = 4, .experts = 128, .ranks = 16}, 1.2, 40);
  CHECK(one.pairs >= 1);
  CHECK(one.pairs < 2.5);
  CHECK(one.active == Approx(one.pairs));  // no expert gets a token twice
  const expert_load all = skewed_load({.tokens = 1, .topk = 4, .experts = 128, .ranks = 1}, 1.2, 40);
  CHECK(all.pairs == Approx(4));
}

TEST_CASE("Tiles are as high as a mean expert needs, whatever one expert gets") {
  expert_load l = balanced_load({.tokens = 512, .topk = 4, .experts = 128, .ranks = 16});  // 16 tokens each
  const double even = moe_cost(test::gb200(), experts("deepgemm_fp8_block"), shape(512, l)).time.base();
  l.mean = 17;  // tiles of 32 rows from here: half of them, so that an item of them takes longer or the same
  const double taller = moe_cost(test::gb200(), experts("deepgemm_fp8_block"), shape(512, l)).time.base();
  CHECK(taller <= even * 1.5);
  CHECK(taller >= even * 0.5);
  CHECK(taller != even);
}

TEST_CASE("A margin makes tiles taller, up to the tallest") {
  const expert_load l = balanced_load({.tokens = 512, .topk = 4, .experts = 128, .ranks = 16});  // 16 tokens each
  moe_params p = experts("deepgemm_fp8_block");
  const auto time = [&] { return moe_cost(test::gb200(), p, shape(512, l)).time.base(); };
  const double low = time();
  p.tile_margin = 4;  // tiles of 64 rows, filled by a quarter
  const double taller = time();
  CHECK(taller > low);
  p.tallest_tile = 16;
  CHECK(time() == low);
}

TEST_CASE("What a tile exposes adds to the time that transfers hide") {
  const expert_load l = balanced_load({.tokens = 64, .topk = 4, .experts = 128, .ranks = 16});
  moe_params p = experts("deepgemm_fp8_block");
  const auto time = [&] { return moe_cost(test::gb200(), p, shape(64, l)).time.base(); };
  p.exposed_share = 0;
  const double hidden = time();
  p.exposed_share = 1;
  CHECK(time() > hidden);
  p.step_time = {};
  p.tensor_rate = p.tensor_rate * 1e6;  // no time to expose
  const double instant = time();
  p.exposed_share = 0;
  CHECK(time() == Approx(instant).epsilon(1e-4));
}

TEST_CASE("Skewed load on one rank holds every pair") {
  const expert_routing r{.tokens = 512, .topk = 4, .experts = 64, .ranks = 1};
  CHECK(skewed_load(r, 1.2).pairs == Approx(512 * 4).epsilon(0.02));
}

TEST_CASE("Experts take the time of their closed form when weights dominate") {
  const gpu_spec& g = test::gb200();
  moe_params p = experts("deepgemm_fp8_block");
  p.tensor_rate = p.tensor_rate * 1e6;  // only bytes are left
  p.step_time = {};
  const expert_load one = balanced_load({.tokens = 8, .topk = 1, .experts = 8, .ranks = 1});
  const moe_shape s = shape(8, one);
  const double w = bytes_per_element(p.weights), a = bytes_per_element(p.activations);
  const double hbm = g.hbm_bandwidth.base() * p.hbm_share;
  const double up = 8 * 4096.0 * 7168 * w + 8 * (7168 * a + 2 * 4096);
  const double down = 8 * 7168.0 * 2048 * w + 8 * (2048 * a + 2 * 7168);
  p.fill_depth = 0;
  const double copies = (p.pair_passes + p.token_passes) * 8 * 7168 * 4;
  const double expected = p.launch.base() + 8 * p.expert_time.base() + (up + down + copies) / hbm;
  CHECK(moe_cost(g, p, s).time.base() == Approx(expected).epsilon(1e-6));
}

TEST_CASE("Experts never beat the roofline and never gain by more tokens") {
  const gpu_spec& g = test::gb200();
  for (const auto& [family, p] : test::blackwell().moe) {
    double before = 0;
    for (double tokens = 1; tokens <= 65536; tokens *= 4) {
      const expert_load l = balanced_load({.tokens = tokens, .topk = 8, .experts = 64, .ranks = 8});
      const kernel_cost c = moe_cost(g, p, shape(tokens, l));
      CAPTURE(family, tokens);
      CHECK(c.time.base() >= c.moved.base() / g.hbm_bandwidth.base());
      CHECK(c.time.base() >= before);
      before = c.time.base();
    }
  }
}

}  // namespace
}  // namespace nvlsim
