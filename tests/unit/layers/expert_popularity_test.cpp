#include "nvlsim/layers/expert_popularity.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace nvlsim;
using Catch::Detail::Approx;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr expert_spread even{.experts = 256, .top_k = 8, .ranks = 8};

expert_spread with(double ranks, double skew) {
  expert_spread out = even;
  out.ranks = ranks;
  out.skew = skew;
  return out;
}

}  // namespace

TEST_CASE("The busiest rank of a few tokens is a small sample, that of many has the popularity of its experts") {
  CHECK(busiest_share(even, endless) == Approx(1));
  const double few = busiest_share(even, 64) - 1, many = busiest_share(even, 6400) - 1;
  CHECK(few == Approx(10 * many));
  // A hundred tokens of 8 choices on 8 ranks: 100 +- 9.2 on each, and the largest of eight is 1.424 of these
  // above.
  const double spread = std::sqrt(100 * 8 * (1 / 8.0) * (7 / 8.0) * (248 / 255.0));
  CHECK(busiest_share(even, 100) == Approx(1 + 1.424 * spread / 100));

  const double floor = busiest_share(with(8, 0.2), endless);
  CHECK(floor == Approx(1 + 1.424 * std::sqrt(0.2 * 8 / 256)));
  CHECK(busiest_share(with(8, 0.2), 100) > floor);
  CHECK(busiest_share(with(8, 0.2), 1e6) == Approx(floor).epsilon(1e-3));
}

TEST_CASE("More ranks and a larger skew make the busiest rank busier, up to what one rank can get") {
  for (const double tokens : {1.0, 30.0, 1000.0, endless}) {
    CHECK(busiest_share(with(1, 2), tokens) == 1);
    double last = 1;
    for (const double ranks : {2.0, 4.0, 8.0, 32.0, 64.0}) {
      const double here = busiest_share(with(ranks, 0.3), tokens);
      CHECK(here >= last);
      CHECK(here <= ranks);
      CHECK(here <= busiest_share(with(ranks, 0.6), tokens));
      last = here;
    }
  }
  // With four experts on a rank and eight choices, a token brings a rank at most four.
  CHECK(busiest_share(with(64, 1e4), 1) == Approx(256 / 8.0));
  CHECK(busiest_share(with(2, 1e4), 1) == Approx(2));
}

TEST_CASE("The rank that uses most of its experts uses more than the mean, and no more than it has") {
  for (const double tokens : {1.0, 16.0, 128.0, 1e5}) {
    const double mean = 256 / 8.0 * touched_share(8 / 256.0, 0.2, tokens);
    CHECK(max_touched(with(8, 0.2), tokens) >= mean);
    CHECK(max_touched(with(8, 0.2), tokens) <= 32);
    CHECK(max_touched(with(1, 0.2), tokens) == Approx(8 * mean));  // nothing to choose from
  }
  // Eight choices of one token on eight ranks: 1 on the mean rank, 1 + 1.424 x 0.98 on the fullest.
  CHECK(max_touched(even, 1) == Approx(1 + 1.424 * std::sqrt(31 / 32.0)));
}
