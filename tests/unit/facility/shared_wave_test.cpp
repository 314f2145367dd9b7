#include "nvlsim/facility/shared_wave.hpp"

#include <catch2/catch.hpp>
#include <utility>

namespace nvlsim {
namespace {

watts level(double x) { return watts::from_base(x); }
seconds long_for(double x) { return seconds::from_base(x); }

/// High for the first half of its period.
power_wave half_high(double period, double high) {
  return {{{long_for(period / 2), level(high), level(high)}, {long_for(period / 2), {}, {}}}};
}

TEST_CASE("Waves of different periods add up, and keep their energy") {
  const power_wave sum =
      superposed({{half_high(1, 100), 1, {}}, {half_high(3, 10), 2, {}}}, level(5), long_for(12), 1200);
  CHECK(sum.period().base() == Approx(12));
  CHECK(sum.mean().base() == Approx(50 + 10 + 5));
  CHECK(sum.peak().base() == Approx(125));
  CHECK(sum.floor().base() == Approx(5));
  // Ramps keep their energy, too.
  const power_wave ramp{{{long_for(2), level(0), level(60)}, {long_for(1), level(60), level(0)}}};
  CHECK(superposed({{ramp, 1, long_for(0.7)}}, {}, long_for(9), 37).energy().base() == Approx(9 * 30));
}

TEST_CASE("Two jobs in step swing twice as much as one; half a period apart they do not swing") {
  const power_wave one = half_high(2, 100);
  CHECK(superposed({{one, 1, {}}, {one, 1, {}}}, {}, long_for(10), 1000).swing().base() == Approx(200));
  CHECK(superposed({{one, 1, {}}, {one, 1, long_for(1)}}, {}, long_for(10), 1000).swing().base() ==
        Approx(0).margin(1e-9));
  CHECK(superposed({{one, 1, {}}, {one, 1, long_for(7)}}, {}, long_for(10), 1000).swing().base() ==
        Approx(0).margin(1e-6));
}

TEST_CASE("A wave that begins just before the end of a period is read within it") {
  // The quotients of these times by the periods round up to whole numbers.
  for (const auto& [period, shift] : {std::pair{0.1, 1.7},
                                      {0.3, 5.699999999999999},
                                      {0.7, 3.4999999999999996},
                                      {1.1, 7.7},
                                      {0.9, 15.299999999999999}}) {
    INFO(period);
    const power_wave sum =
        superposed({{half_high(period, 100), 1, long_for(shift)}}, {}, long_for(period * 8), 16);
    for (std::size_t i = 0; i < sum.pieces.size(); ++i)
      CHECK(sum.pieces[i].from.base() == Approx(i % 2 ? 0 : 100).margin(1e-6));
  }
}

TEST_CASE("Nothing without a period counts") {
  CHECK(superposed({{power_wave{}, 1, {}}}, level(7), long_for(1), 10).mean().base() == Approx(7));
}

}  // namespace
}  // namespace nvlsim
