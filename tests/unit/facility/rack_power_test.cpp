#include "nvlsim/facility/rack_power.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/facility/site_figures.hpp"

namespace nvlsim {
namespace {

platform small_racks() {
  platform p;
  p.racks = 3;
  p.vm.gpus = 4;
  p.vm.cpus = 2;
  p.rack.vms = 2;  // 8 GPUs
  p.rack.nvlink_switch_trays = 1;
  p.rack.power_per_vm_other = 50.0_W;
  p.rack.power_per_switch_tray = 100.0_W;
  p.rack.power_supply_efficiency = 0.8;
  p.cpu.idle_power = 25.0_W;
  p.gpu.idle_power = 100.0_W;
  return p;
}

/// Two stages: one works in the first half of two seconds, the other in the second. A quarter of the time of each
/// stays idle.
struct two_stages {
  plan planned;
  timeline times;
  two_stages() {
    const auto work = planned.add_template({"forward", {{part_kind::gemm, "x", 0.75_s}}, {}, 1000.0_W});
    for (int stage = 0; stage < 2; ++stage) {
      rank_class c{stage == 0 ? "stage 0" : "stage 1", 8, {{}}};
      planned.append(c.streams.front(), work, {});
      planned.classes.push_back(c);
      times.spans.push_back({{{stage * 1.0, stage + 0.75}}});
    }
    times.makespan = 2.0_s;
  }
};

TEST_CASE("Waves of stages have the energy of their operations and of waiting") {
  const two_stages s;
  const auto waves = waves_of_stages(s.planned, s.times, 100.0_W, 2);
  REQUIRE(waves.size() == 2);
  for (const power_wave& w : waves) {
    REQUIRE(w.energy().base() == Approx(0.75 * 1000 + 1.25 * 100));
    REQUIRE(w.peak().base() == Approx(1000));
    REQUIRE(w.floor().base() == Approx(100));
  }
  REQUIRE(waves[0].pieces.front().from.base() == Approx(1000));
  REQUIRE(waves[1].pieces.front().from.base() == Approx(100));
}

TEST_CASE("Racks with the same ranks are one kind") {
  const parallelism par{.tp = 2, .pp = 2, .cp = 1, .dp = 4};  // stages of 8 ranks
  const auto apart = kinds_of_racks(par, {.gpus_per_domain = 8});
  REQUIRE(apart.size() == 2);
  REQUIRE(apart[0].gpus == std::vector<std::int64_t>{0, 8});
  const auto mixed = kinds_of_racks(par, {.gpus_per_domain = 6});  // 6 | 2 + 4 | 4
  REQUIRE(mixed.size() == 3);
  const parallelism large{.tp = 8, .pp = 1, .cp = 1, .dp = 1000};
  const auto same = kinds_of_racks(large, {.gpus_per_domain = 8});
  REQUIRE(same.size() == 1);
  REQUIRE(same[0].racks == 1000);
}

TEST_CASE("A rack draws its GPUs, what is beside them, and supply losses; the site all racks") {
  const platform p = small_racks();
  const two_stages s;
  const auto stages = waves_of_stages(s.planned, s.times, p.gpu.idle_power, 2);
  const std::vector<rack_kind> kinds = {{{8, 0}, 1}, {{0, 8}, 1}};
  facility_spec f;
  f.overheads.pue = 1.5;
  const site_power w = power_of_site(p, f, stages, kinds);
  const double beside = 4 * 25 + 2 * 50 + 100;  // CPUs, trays, switch tray
  REQUIRE(w.rack_load.peak().base() == Approx((8 * 1000 + beside) / 0.8));
  REQUIRE(w.idle_rack.base() == Approx((8 * 100 + beside) / 0.8));
  // One stage works at a time, so that the site swings by one rack, and the third rack idles.
  REQUIRE(w.load.peak().base() == Approx((8 * 1000 + beside) / 0.8 + 2 * w.idle_rack.base()));
  REQUIRE(w.load.swing().base() == Approx(8 * 900 / 0.8));
  REQUIRE(w.meter.mean().base() == Approx(1.5 * w.load.mean().base()));
  REQUIRE(w.meter.swing().base() == Approx(w.load.swing().base()));
}

TEST_CASE("Stages in racks of their own swing more than stages that share racks") {
  const platform p = small_racks();
  const two_stages s;
  const auto stages = waves_of_stages(s.planned, s.times, p.gpu.idle_power, 2);
  const auto swing = [&](const std::vector<rack_kind>& kinds) {
    return power_of_site(p, {}, stages, kinds).rack_load.swing().base();
  };
  REQUIRE(swing({{{4, 4}, 2}}) == Approx(swing({{{8, 0}, 1}, {{0, 8}, 1}}) / 2));
}

TEST_CASE("Storage and ramp limits of racks act on the site") {
  const platform p = small_racks();
  const two_stages s;
  const auto stages = waves_of_stages(s.planned, s.times, p.gpu.idle_power, 2);
  const std::vector<rack_kind> kinds = {{{8, 0}, 1}, {{0, 8}, 1}};
  facility_spec f;
  const power_figures bare = figures_of(p, f, power_of_site(p, f, stages, kinds));
  f.smoothing.storage_per_gpu = joules::from_base(100);
  const power_figures stored = figures_of(p, f, power_of_site(p, f, stages, kinds));
  REQUIRE(stored.site_peak < bare.site_peak);
  REQUIRE(stored.rack_peak < bare.rack_peak);
  REQUIRE(stored.burnt_share == Approx(0).margin(1e-9));
  f.smoothing.fall_per_s = 2000.0_W;
  const power_figures held = figures_of(p, f, power_of_site(p, f, stages, kinds));
  REQUIRE(held.burnt_share > 0);
  REQUIRE(held.site_swing < stored.site_swing);
  // What is burnt is paid for.
  f.overheads.pue = 1.0;
  const site_work work{joules::from_base(3.6e6), 16, 2.0_s};
  REQUIRE(kWh(*figures_of(f, work, held).took.at_meter) == Approx(1 + held.burnt_share));
}

TEST_CASE("Waves with other pieces add up") {
  const power_wave a{{{1.0_s, 10.0_W, 10.0_W}, {3.0_s, 2.0_W, 2.0_W}}};
  const power_wave b{{{2.0_s, 0.0_W, 4.0_W}, {2.0_s, 4.0_W, 0.0_W}}};
  const power_wave sum = sum_of({{2, a}, {1, b}});
  REQUIRE(sum.energy().base() == Approx(2 * 16 + 8));
  REQUIRE(sum.peak().base() == Approx(22));
  REQUIRE(sum.period().base() == Approx(4));
}

}  // namespace
}  // namespace nvlsim
