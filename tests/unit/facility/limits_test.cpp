#include "nvlsim/facility/limits.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "nvlsim/facility/footprint.hpp"
#include "nvlsim/facility/money.hpp"

namespace nvlsim {
namespace {

rack_cooling water(double L_per_min) {
  return {.flow_L_per_min = L_per_min,
          .supply_C = 37.0,
          .return_limit_C = 51.0,
          .heat_J_per_kg_K = 4186.0,
          .density_kg_per_L = 1.0,
          .liquid_share = 1.0};
}

TEST_CASE("Water warms by power over heat capacity of the flow") {
  // 1.5 L/min per kW: 0.025 kg/s x 4.186 kJ/kg/K warm by 9.56 K; 1.3: 11.0 K; 14 K need 1.02 L/min per kW.
  REQUIRE(warming_K(water(1.5), 1000.0_W) == Approx(9.556).epsilon(1e-3));
  REQUIRE(warming_K(water(1.3), 1000.0_W) == Approx(11.03).epsilon(1e-3));
  REQUIRE(warming_K(water(1.0238), 1000.0_W) == Approx(14).epsilon(1e-3));
  rack_cooling glycol = water(1.5);
  glycol.heat_J_per_kg_K = 3900.0;
  glycol.density_kg_per_L = 1.025;
  REQUIRE(warming_K(glycol, 1000.0_W) == Approx(10).epsilon(1e-2));
}

TEST_CASE("What cooling takes falls with warmer supply and less flow, and rises with the share of air") {
  REQUIRE(coolable_power(water(1.0238 * 130)).base() == Approx(130e3).epsilon(1e-3));
  rack_cooling warm = water(133);
  const watts before = coolable_power(warm);
  warm.supply_C = 44.0;
  REQUIRE(coolable_power(warm).base() == Approx(before.base() / 2));
  warm.supply_C = 60.0;
  REQUIRE(coolable_power(warm).base() == 0);
  rack_cooling shared = water(133);
  shared.liquid_share = 0.8;
  REQUIRE(coolable_power(shared).base() == Approx(before.base() / 0.8));
}

TEST_CASE("The tightest of rack, row, site and cooling limits a rack") {
  power_budget b{.rack = constant<watts>(watts::from_base(140e3)),
                 .row = constant<watts>(watts::from_base(1360e3)),
                 .site = {},
                 .racks_per_row = 10};
  REQUIRE(limit_of_rack(b, {}, 10, 1.1).power->base() == Approx(136e3));
  REQUIRE(limit_of_rack(b, {}, 10, 1.1).from == "the row's budget");
  REQUIRE(limit_of_rack(b, {}, 8, 1.1).power->base() == Approx(140e3));  // the row is not full
  b.site = constant<watts>(watts::from_base(1.1e6));
  REQUIRE(limit_of_rack(b, {}, 10, 1.1).power->base() == Approx(100e3));
  REQUIRE(limit_of_rack(b, water(70), 10, 1.1).from == "cooling");
  REQUIRE_FALSE(limit_of_rack({}, {}, 10, 1.1).power);
}

TEST_CASE("Independent racks share a budget better than racks in step") {
  REQUIRE(racks_within(watts::from_base(1e6), watts::from_base(125e3)) == 8);
  const std::int64_t n =
      independent_racks_within(watts::from_base(1e6), watts::from_base(100e3), watts::from_base(15e3), 3.09);
  REQUIRE(n == 8);
  REQUIRE(independent_racks_within(watts::from_base(100e6), watts::from_base(100e3), watts::from_base(15e3),
                                   3.09) > 980);
  REQUIRE(independent_racks_within(watts::from_base(1e6), watts::from_base(100e3), watts{}, 3.09) == 10);
  const auto many = static_cast<double>(
      independent_racks_within(watts::from_base(100e6), watts::from_base(100e3), watts::from_base(15e3), 3.09));
  REQUIRE(many * 100e3 + 3.09 * std::sqrt(many) * 15e3 <= 100e6);
  REQUIRE((many + 1) * 100e3 + 3.09 * std::sqrt(many + 1) * 15e3 > 100e6);
}

TEST_CASE("Carbon and water are kilowatt-hours times their factors") {
  site_overheads site;
  REQUIRE_FALSE(footprint_of(site, joules::from_base(3.6e6), 10.0_s).at_meter);
  site.pue = 1.1;
  site.wue_L_per_kWh = 0.27;
  grid_carbon flat;
  flat.g_per_kWh.fill(413.0);
  site.carbon = flat;
  const footprint f = footprint_of(site, joules::from_base(3.6e9), 90.0_s);
  REQUIRE(kWh(*f.at_meter) == Approx(1100));
  REQUIRE(*f.water_L == Approx(270));
  REQUIRE(*f.carbon_g == Approx(1100 * 413));
}

TEST_CASE("Energy by the hour meets the carbon of its hours") {
  site_overheads site;
  site.pue = 1.1;
  site.carbon.emplace();
  site.carbon->g_per_kWh.fill(0.0);
  site.carbon->g_per_kWh[23] = 1000.0;
  std::array<joules, hours_a_day> drawn{};
  drawn[1] = joules::from_base(3.6e9);
  drawn[23] = joules::from_base(7.2e6);
  REQUIRE(*footprint_of(site, drawn).carbon_g == Approx(2 * 1.1 * 1000));
  REQUIRE(footprint_of(site, drawn).at_meter->base() == Approx(1.1 * 3.6072e9));
  site.start_h = 22.0;  // the run's hour 1 is the day's hour 23
  REQUIRE(*footprint_of(site, drawn).carbon_g == Approx(1000 * 1.1 * 1000));
  site.start_h = 22.5;
  REQUIRE(*footprint_of(site, drawn).carbon_g == Approx(500 * 1.1 * 1000));
  site.carbon->g_per_kWh.fill(413.0);  // flat: as an even draw
  REQUIRE(*footprint_of(site, drawn).carbon_g ==
          Approx(*footprint_of(site, joules::from_base(3.6072e9), seconds::from_base(86400)).carbon_g));
}

TEST_CASE("Carbon by the hour is the mean over the hours of a run") {
  grid_carbon day;
  for (int h = 0; h < hours_a_day; ++h) day.g_per_kWh[static_cast<std::size_t>(h)] = h < 12 ? 100.0 : 300.0;
  const auto hours = [](double h) { return seconds::from_base(h * 3600); };
  REQUIRE(day.mean_over(0, hours(12)) == Approx(100));
  REQUIRE(day.mean_over(11.5, hours(2)) == Approx((0.5 * 100 + 1.5 * 300) / 2));
  REQUIRE(day.mean_over(23, hours(2)) == Approx(200));
  REQUIRE(day.mean_over(5, hours(48)) == Approx(200));
  REQUIRE(day.mean_over(0, hours(30)) == Approx((24 * 200 + 6 * 100) / 30.0));
  REQUIRE(day.mean_over(13.5, seconds{}) == Approx(300));
  REQUIRE(day.best_start(hours(13)) == 0);
}

TEST_CASE("An interruption of 256 machines for 20 minutes at 55 dollars an hour costs 4,693 dollars") {
  // AWS, December 2025: 4,693 dollars a disruption, 141,000 dollars and 10 hours a month of one a day.
  payment p;
  p.gpu_price = constant<dollar_rate>(dollar_rate::from_base(55.0 / 3600));
  const double one = bill_for(p, 256, 1200.0_s, {}).total().base();
  REQUIRE(one == Approx(4693).epsilon(1e-3));
  REQUIRE(30 * one == Approx(141e3).epsilon(2e-3));
  p.discount = 0.4;
  REQUIRE(bill_for(p, 256, 1200.0_s, {}).total().base() == Approx(0.6 * one));
  p.goodput = 0.8;
  REQUIRE(bill_for(p, 256, 1200.0_s, {}).total().base() == Approx(0.75 * one));
}

TEST_CASE("147,000 hours of an H800 at 2 dollars are 294,000 dollars") {
  // arXiv 2501.12948, table 7.
  payment p;
  p.gpu_price = constant<dollar_rate>(dollar_rate::from_base(2.0 / 3600));
  REQUIRE(bill_for(p, 1, seconds::from_base(147e3 * 3600), {}).total().base() == Approx(294e3));
}

TEST_CASE("Owned GPUs cost their capital over the years, staff and the energy they draw") {
  ownership o;
  o.capital_per_gpu = dollars::from_base(54400);
  o.years = 5.0;
  const double straight = 54400 / (5 * hours_a_year);
  REQUIRE(fixed_cost_per_gpu(o).base() * 3600 == Approx(straight));
  o.interest = 1e-9;
  REQUIRE(fixed_cost_per_gpu(o).base() * 3600 == Approx(straight).epsilon(1e-6));
  o.interest = 0.1;  // annuity factor of 5 years at 10 %: 0.26380
  REQUIRE(fixed_cost_per_gpu(o).base() * 3600 == Approx(54400 * 0.263797 / hours_a_year).epsilon(1e-5));
  o.residual = 0.2;
  REQUIRE(fixed_cost_per_gpu(o).base() * 3600 ==
          Approx(54400 * (0.263797 * (1 - 0.2 / std::pow(1.1, 5))) / hours_a_year).epsilon(1e-5));
  o.usd_per_kWh = 0.08;
  payment p;
  p.way = purchase::owned;
  p.owned = o;
  REQUIRE(bill_for(p, 72, 3600.0_s, joules::from_base(130 * 3.6e6)).power.base() == Approx(10.4));
}

TEST_CASE("Daly's exact form is the first-order loss where interruptions are rare") {
  // 2,048 GPUs of 8 a node at 6.5 failures of 1,000 nodes a day, hourly checkpoints, 5 minutes to restart: a loss
  // of (5 + 30 min) / 14.4 h (arXiv 2410.21680).
  const seconds between = seconds::from_base(86400 * 1000 / (2048 / 8 * 6.5));
  REQUIRE(daly_useful_share(between, 3600.0_s, {}, 300.0_s) == Approx(1 - 2100 / between.base()).margin(1e-3));
  // An interval that is long against the time between interruptions: e - 1 times the work, and e of restarts.
  REQUIRE(daly_useful_share(10.0_s, 10.0_s, {}, {}) == Approx(1 / std::expm1(1)));
}

TEST_CASE("Spot: notice that is long enough saves what would be computed twice") {
  spot_market s{.eviction_after = seconds::from_base(1e6),
                .gpus_per_machine = 4,
                .notice = 30.0_s,
                .save = 60.0_s,
                .restart = 600.0_s,
                .checkpoint_interval = 1800.0_s,
                .returns_after = {}};
  const double without = useful_share(s, 64);
  REQUIRE(without == Approx(daly_useful_share(seconds::from_base(1e6 / 16), 1800.0_s, 60.0_s, 600.0_s)));
  s.notice = 120.0_s;
  const double with = useful_share(s, 64), m = 1e6 / 16;
  REQUIRE(with > without);
  REQUIRE(with == Approx(m / (m + 60 + m * std::expm1(600 / m))));
  REQUIRE(useful_share(s, 640) < with);
  payment p;
  p.way = purchase::spot;
  p.gpu_price = constant<dollar_rate>(dollar_rate::from_base(1));
  p.discount = 0.5;
  p.spot = s;
  REQUIRE(bill_for(p, 64, 10.0_s, {}).total().base() == Approx(320 / with));
}

}  // namespace
}  // namespace nvlsim
