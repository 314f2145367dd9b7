#include "nvlsim/facility/waveform.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <random>

namespace nvlsim {
namespace {

/// `high` for `on` seconds, then `low` for `off` seconds.
power_wave square(double high, double on, double low, double off) {
  return {{{seconds::from_base(on), watts::from_base(high), watts::from_base(high)},
           {seconds::from_base(off), watts::from_base(low), watts::from_base(low)}}};
}

power_wave random_wave(std::uint64_t seed) {
  std::mt19937_64 g(seed);
  const auto random = [&g] { return static_cast<double>(g() >> 11) * 0x1p-53; };
  power_wave out;
  for (int i = 0; i < 40; ++i) {
    const watts level = watts::from_base(20e3 + 100e3 * random());
    out.pieces.push_back({seconds::from_base(0.01 + random()), level, level});
  }
  return out;
}

TEST_CASE("A wave of changes has the energy of its levels") {
  const power_wave w = wave_of({{2, -300}, {1, 500}, {1, 100}}, 200.0_W, 4.0_s);
  REQUIRE(w.pieces.size() == 3);
  REQUIRE(w.energy().base() == Approx(200 + 800 + 2 * 500));
  REQUIRE(w.peak().base() == Approx(800));
  REQUIRE(w.floor().base() == Approx(200));
  REQUIRE(w.mean().base() == Approx(500));
  REQUIRE(scaled(w, 2, 10.0_W).peak().base() == Approx(1610));
}

TEST_CASE("Condensing keeps the energy and flattens what is short") {
  const power_wave w = random_wave(3);
  const power_wave fewer = condensed(w, 8);
  REQUIRE(fewer.pieces.size() == 8);
  REQUIRE(fewer.energy().base() == Approx(w.energy().base()).epsilon(1e-12));
  REQUIRE(fewer.period().base() == Approx(w.period().base()));
  REQUIRE(fewer.peak() < w.peak());
  REQUIRE(condensed(w, 40).pieces.size() == 40);
  const power_wave ramp{{{2.0_s, 0.0_W, 400.0_W}}};
  REQUIRE(condensed(ramp, 2).pieces[1].from.base() == Approx(300));
}

TEST_CASE("A storage takes its energy off the peak of a square wave and adds it to the floor") {
  // 4.68 kJ (65 J of each of 72 GPUs) against a swing of 50 kW once a second: 4.68 kJ in half a second are 9.36
  // kW.
  const power_wave w = square(130e3, 0.5, 80e3, 0.5);
  const power_wave smooth = with_storage(w, joules::from_base(65 * 72));
  REQUIRE(smooth.peak().base() == Approx(130e3 - 9360));
  REQUIRE(smooth.floor().base() == Approx(80e3 + 9360));
  REQUIRE(smooth.energy().base() == Approx(w.energy().base()));
  // The swing is gone once half a period's surplus fits.
  REQUIRE(with_storage(w, joules::from_base(12500)).swing().base() == Approx(0).margin(1e-6));
  REQUIRE(with_storage(w, joules::from_base(12400)).swing().base() > 1);
}

TEST_CASE("A storage is never overdrawn nor overfull, and more of it is never worse") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const power_wave w = random_wave(seed);
    double peak = w.peak().base(), floor = w.floor().base();
    for (const double room : {1e3, 5e3, 2e4, 1e5}) {
      const power_wave smooth = with_storage(w, joules::from_base(room));
      REQUIRE(smooth.energy().base() == Approx(w.energy().base()).epsilon(1e-9));
      REQUIRE(smooth.period().base() == Approx(w.period().base()).epsilon(1e-12));
      REQUIRE(smooth.peak().base() <= peak * (1 + 1e-12));
      REQUIRE(smooth.floor().base() >= floor * (1 - 1e-12));
      peak = smooth.peak().base();
      floor = smooth.floor().base();
      // What the storage holds, at each corner of either.
      double low = 0, high = 0, at = 0, drawn = 0, now = 0;
      std::size_t j = 0;
      double taken = 0;
      for (const wave_piece& p : smooth.pieces) {
        for (; j < w.pieces.size() && now + w.pieces[j].time.base() <= at + p.time.base() + 1e-12; ++j) {
          now += w.pieces[j].time.base();
          taken += w.pieces[j].from.base() * w.pieces[j].time.base();
          const double held = drawn + p.from.base() * (now - at) - taken;
          low = std::min(low, held);
          high = std::max(high, held);
        }
        drawn += p.from.base() * p.time.base();
        at += p.time.base();
      }
      REQUIRE(high - low <= room * (1 + 1e-9));
    }
  }
}

TEST_CASE("Ramp limits burn triangles beside a square wave") {
  // Down from 100 to 20 W at 40 W/s takes 2 s: half of 80 W x 2 s.
  const power_wave w = square(100, 5, 20, 5);
  const power_wave down = with_ramp_limits(w, 0, 40);
  REQUIRE(down.energy().base() == Approx(w.energy().base() + 80));
  const power_wave both = with_ramp_limits(w, 40, 40);
  REQUIRE(both.energy().base() == Approx(w.energy().base() + 160));
  REQUIRE(largest_change_within(both, 1.0_s).base() == Approx(40));
  REQUIRE(both.floor().base() == Approx(20));
  // With 4 W/s from both sides the low is never reached: the ramps meet 2.5 s in, at 90 W.
  REQUIRE(with_ramp_limits(w, 4, 4).floor().base() == Approx(90));
  REQUIRE(with_ramp_limits(w, 0, 0).energy().base() == Approx(w.energy().base()));
}

TEST_CASE("Ramp limits hold on any wave, and the draw never falls below the load") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const power_wave w = random_wave(seed), held = with_ramp_limits(w, 30e3, 10e3);
    REQUIRE(held.period().base() == Approx(w.period().base()));
    for (std::size_t i = 0; i < held.pieces.size(); ++i) {
      const wave_piece& p = held.pieces[i];
      const wave_piece& next = held.pieces[(i + 1) % held.pieces.size()];
      REQUIRE(next.from.base() == Approx(p.to.base()).epsilon(1e-9));
      const double slope = (p.to - p.from).base() / p.time.base();
      REQUIRE(slope <= 30e3 * (1 + 1e-6));
      REQUIRE(slope >= -10e3 * (1 + 1e-6));
    }
    REQUIRE(held.peak() == w.peak());
    REQUIRE(held.energy() > w.energy());
  }
}

TEST_CASE("A floor burns what is missing to it") {
  REQUIRE(with_floor(square(100, 5, 20, 5), 60.0_W).energy().base() == Approx(500 + 300));
  const power_wave ramp{{{4.0_s, 0.0_W, 400.0_W}, {4.0_s, 400.0_W, 0.0_W}}};
  REQUIRE(with_floor(ramp, 100.0_W).energy().base() == Approx(1600 + 2 * 50));
}

TEST_CASE("Oscillation is that of the harmonics of a square wave") {
  // Amplitude of the fundamental of a square wave of swing s: 2 s / pi, so s sqrt(2) / pi root mean square.
  const power_wave w = square(300, 0.5, 100, 0.5);
  const double fundamental = 200 * std::numbers::sqrt2 / std::numbers::pi;
  REQUIRE(oscillation(w, 0.1, 1.5).base() == Approx(fundamental));
  REQUIRE(oscillation(w, 0.1, 3).base() == Approx(fundamental * std::sqrt(1 + 1.0 / 9)));
  REQUIRE(oscillation(w, 1.1, 2.9).base() == Approx(0).margin(1e-9));
  // All harmonics together are the deviation of the wave (Parseval).
  REQUIRE(oscillation(w, 0.1, 20000).base() == Approx(100).epsilon(1e-4));
  // A triangle from 0 to 1 and back: variance 1/12.
  const power_wave triangle{{{0.5_s, 0.0_W, 1.0_W}, {0.5_s, 1.0_W, 0.0_W}}};
  REQUIRE(deviation(triangle).base() == Approx(std::sqrt(1.0 / 12)));
  REQUIRE(oscillation(triangle, 0.1, 200).base() == Approx(std::sqrt(1.0 / 12)).epsilon(1e-5));
}

TEST_CASE("The largest change within a time goes round the period and meets ramps between corners") {
  const power_wave triangle{{{4.0_s, 0.0_W, 400.0_W}, {4.0_s, 400.0_W, 0.0_W}}};
  REQUIRE(largest_change_within(triangle, 1.0_s).base() == Approx(100));
  REQUIRE(largest_change_within(triangle, 100.0_s).base() == Approx(400));
  const power_wave flat_in_time{{{1.0_s, 100.0_W, 100.0_W}, {8.0_s, 50.0_W, 50.0_W}, {1.0_s, 0.0_W, 0.0_W}}};
  REQUIRE(largest_change_within(flat_in_time, 0.5_s).base() == Approx(100));  // from the last to the first
}

TEST_CASE("GPUs that stop together: a storage rides milliseconds, a ramp burns a triangle") {
  // 65 J of 72 GPUs: 94 ms of a drop of 50 kW, 36 ms of 130 kW.
  const joules storage = joules::from_base(65 * 72);
  REQUIRE(effect_of_stop(watts::from_base(130e3), watts::from_base(80e3), storage, 0).ridden.base() ==
          Approx(0.0936));
  REQUIRE(effect_of_stop(watts::from_base(130e3), 0.0_W, storage, 0).ridden.base() == Approx(0.036));
  const stop_effect ramped = effect_of_stop(watts::from_base(130e3), watts::from_base(30e3), storage, 10e3);
  REQUIRE(ramped.ramp.base() == Approx(10));
  REQUIRE((ramped.stored + ramped.burnt).base() == Approx(500e3));
  REQUIRE(ramped.stored.base() == Approx(4680));
  REQUIRE(effect_of_stop(watts::from_base(30e3), watts::from_base(130e3), storage, 10e3).drop.base() == 0);
}

}  // namespace
}  // namespace nvlsim
