#include "nvlsim/operation/operation_run.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "unit/operation/setups.hpp"

namespace nvlsim {
namespace {

using namespace test;

TEST_CASE("Runs agree with Daly's exact form in six published cases") {
  // Meta's failure rates, 6.50 and 2.34 per 1,000 nodes of 8 GPUs and day.
  const auto mttf = [](double gpus, double rate) { return job_mttf(gpus / 8, rate * 1e-3).base(); };
  struct {
    double mttf, interval, save, restart;
  } const cases[] = {
      {mttf(2048, 6.5), 3600, 0, 600}, {mttf(4096, 6.5), 3600, 0, 600},  {mttf(4096, 6.5), 3600, 300, 600},
      {mttf(16384, 6.5), 300, 0, 300}, {mttf(16384, 6.5), 3600, 0, 300}, {mttf(100000, 2.34), 120, 5, 120},
      {18 * 60, 120, 0, 600}};
  for (const auto& c : cases) {
    INFO("mttf " << c.mttf << " s, every " << c.interval << " s");
    const operation_setup s = renewal(c.mttf, c.interval, c.save, c.restart);
    const share_of_seeds got = useful_share(s, 40);
    const restart_costs costs = mean_costs(s, tiers_of(s));
    CHECK(costs.mttf.base() == Approx(c.mttf));
    CHECK(costs.restart.base() == Approx(c.restart));
    const double exact = daly_useful_share(costs, *s.save.interval);
    CHECK(std::abs(got.mean - exact) < 0.005);
    CHECK(std::abs(got.mean - exact) < 3.5 * got.error + 0.0005);  // a run of 60 days does not end with a failure
  }
}

TEST_CASE("Recoveries that follow each other cost their full time, on the clock of the wall") {
  // FT-HSDP (arXiv 2602.00277): a failure each 18 minutes, 10 minutes lost: 0.44 = 1 - 10/18.
  operation_setup s = renewal(18 * 60, 1, 0, 600);
  s.recovery.again = second_failure::queue;
  CHECK(useful_share(s, 40).mean == Approx(1 - 10.0 / 18).margin(0.005));
  // Parts that fail only while the job runs: 18 of 28 minutes.
  s.failures.clock = failure_clock::up;
  CHECK(useful_share(s, 40).mean == Approx(18.0 / 28).margin(0.005));
}

TEST_CASE("Replicas that drop out cost a short stall and their capacity") {
  // FT-HSDP: 12 replicas, 3 minutes of stall, 10 until a replica is back: published 0.80.
  operation_setup s = renewal(18 * 60, 1, 0, 600);
  s.recovery.again = second_failure::queue;
  s.replicas = 12;
  s.recovery.mode = recovery_mode::replica;
  s.recovery.replica_stall = secs(180);
  const double share = useful_share(s, 40).mean;
  CHECK(share == Approx(0.80).margin(0.02));
  CHECK(share < 1 - 3.0 / 18);
}

TEST_CASE("One recovery time explains both of torchft's failure rates") {
  // 30 replica groups; 0.823 of the steps committed with a failure each 60 s, 0.302 with one each 15 s.
  const double recovery = 60 * (1 - 5145.0 / 6249);  // fitted to the first
  operation_setup s = renewal(15, 1, 0, recovery);
  s.recovery.again = second_failure::queue;
  s.duration = seconds::from_base(day);
  CHECK(useful_share(s, 20).mean == Approx(268.0 / 888).margin(0.03));
}

TEST_CASE("Racks with k of 18 trays up are as frequent as the binomial says") {
  // Trays fail and are repaired at 1 % of the time; the job needs k trays of one rack, and nothing else costs
  // time.
  for (const auto& [k, expected] : {std::pair{18, 0.835}, {17, 0.986}, {16, 0.9993}}) {
    operation_setup s = plain_setup(1, 1, k);
    component tray = stopper("tray", cluster_part::tray, 99 * hour, hour);
    tray.of = cluster_part::tray;
    s.failures.components = {tray};
    s.save.interval = seconds::from_base(1e-3);
    s.duration = seconds::from_base(2000 * day);
    const share_of_seeds got = useful_share(s, 10);
    INFO(k << " of 18");
    CHECK(k_of_n_up(k, 18, 0.99) == Approx(expected).margin(0.0005));
    CHECK(std::abs(got.mean - k_of_n_up(k, 18, 0.99)) < 3.5 * got.error + 1e-5);
  }
}

TEST_CASE("Every GPU-hour is accounted for, whatever happens") {
  for (const recovery_mode mode : test::all_modes) {
    const operation_setup s = eventful(mode);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const operation_outcome o = run_by_queue(s, seed);
      INFO("mode " << static_cast<int>(mode) << ", seed " << seed);
      CHECK(total(o) == Approx(720 * 60 * day).epsilon(1e-9));
      for (const double x : o.gpu_seconds) CHECK(x >= -1e-3);
      CHECK(spent(o, gpu_use::useful) == Approx(o.progress * 512).epsilon(1e-9));
      CHECK(o.failures > 50);
      CHECK(o.stops > 10);
    }
  }
}

TEST_CASE("The same seed gives the same run, and another seed another") {
  const operation_setup s = eventful(recovery_mode::elastic);
  CHECK(run_by_queue(s, 3).progress == run_by_queue(s, 3).progress);
  CHECK(run_by_queue(s, 3).progress != run_by_queue(s, 4).progress);
}

double mean_share(const operation_setup& s) { return useful_share(s, 30).mean; }

TEST_CASE("Answers move as physics says") {
  const operation_setup base = eventful(recovery_mode::restart);
  const double now = mean_share(base);
  const auto with = [&](auto change) {
    operation_setup s = base;
    change(s);
    return mean_share(s);
  };
  CHECK(with([](auto& s) { s.failures.components[0].mtbf *= 0.5; }) < now);
  CHECK(with([](auto& s) { s.recovery.watched = 0.2; }) < now);
  CHECK(with([](auto& s) { s.recovery.init = secs(600); }) < now);
  CHECK(with([](auto& s) { s.save.pause = secs(200); }) < now);
  CHECK(with([](auto& s) { s.save.interval = seconds::from_base(8 * hour); }) < now);
  CHECK(with([](auto& s) { s.asked = {8 * 18, 18}; }) < now);  // no spare trays
  CHECK(with([](auto& s) { s.failures.components[0].repair *= 10; }) < now);
  CHECK(with([](auto& s) { s.failures.components[3].speed = 0.1; }) < now);
  CHECK(with([](auto& s) { s.failures.components[4].detection = secs(48 * hour); }) < now);
  CHECK(with([](auto& s) { s.failures.lemons.removed_after = 1; }) > now);
  CHECK(with([](auto& s) { s.maintenance.lasts = seconds::from_base(10 * hour); }) < now);
}

TEST_CASE("Slow parts that take more down never do better, whether they are replaced or kept") {
  for (const std::int64_t racks : {10, 4}) {  // with free racks, and with spare trays only
    operation_setup base = plain_setup(racks, 4, 16);
    base.cluster.racks_per_row = 4;
    for (const bool evict : {true, false}) {
      double before = 1;
      for (const cluster_part part : parts_down) {
        operation_setup s = slowed(base, part, 400 * day, evict);
        const double share = useful_share(s, 20).mean;
        INFO(racks << " racks, evict " << evict << ", part " << static_cast<int>(part));
        CHECK(share <= before + 0.001);
        s.failures.components[0].mtbf *= 0.25;
        CHECK(useful_share(s, 20).mean < share);
        before = share;
      }
    }
  }
}

/// Lets a run go on until its last repair, without further failures after its end.
machine_state repaired(const operation_setup& s, std::uint64_t seed) {
  operation_state state = begin_operation(s, seed);
  std::multimap<double, operation_event> due;
  for (;;) {
    for (const operation_order& o : state.orders)
      if (o.at <= s.duration.base() || o.what.kind == operation_event_kind::mended) due.emplace(o.at, o.what);
    state.orders.clear();
    if (due.empty()) return state.machine;
    const auto [now, what] = *due.begin();
    due.erase(due.begin());
    happen(state, now, what);
  }
}

TEST_CASE("When all repairs are done all trays are up, whatever failed") {
  for (const bool evict : {true, false})
    for (const failure_effect effect : {failure_effect::stops, failure_effect::slows, failure_effect::corrupts})
      for (const cluster_part part : parts_down) {
        operation_setup s = slowed(plain_setup(10, 4, 16), part, 1000 * day, evict);
        s.cluster.racks_per_row = 4;
        s.failures.components[0].effect = effect;
        s.failures.components[0].detection = secs(600);
        const machine_state m = repaired(s, 1);
        INFO("evict " << evict << ", effect " << static_cast<int>(effect) << ", part " << static_cast<int>(part));
        CHECK(m.broken == 0);
        CHECK(m.hurt.empty());
        CHECK(std::count(m.causes.begin(), m.causes.end(), 0) == m.shape.trays());
      }
}

TEST_CASE("A job leaves a rack with a slow switch only if a rack has room for all its trays of it") {
  for (const std::int64_t racks : {5, 4}) {
    operation_setup s = slowed(plain_setup(racks, 4, 16), cluster_part::rack, 4000 * day, true);
    const operation_outcome o = run_by_queue(s, 1);
    INFO(racks << " racks");
    CHECK(o.tolls[0].failures > 0);
    CHECK((o.tolls[0].stops > 0) == (racks == 5));
    CHECK((spent(o, gpu_use::repair) > 0) == (racks == 5));
  }
}

TEST_CASE("Without spares a job that shrinks does more than one that waits, and replicas that drop out more yet") {
  operation_setup s = eventful(recovery_mode::restart);
  s.cluster.racks = 8;
  s.asked = {8 * 18, 18};
  const double waits = mean_share(s);
  s.recovery.mode = recovery_mode::elastic;
  const double shrinks = mean_share(s);
  s.recovery.mode = recovery_mode::replica;
  CHECK(waits < shrinks);
  CHECK(shrinks < mean_share(s));
}

TEST_CASE("Replicas that fail while the whole job restarts are left out, however often that is") {
  // A restart of two hours, in which a tray fails each ten minutes: a job that starts over never comes back.
  operation_setup s = plain_setup(64, 64, 18);
  s.replicas = 64;
  s.recovery.init = secs(2 * hour);
  component tray = stopper("tray", cluster_part::tray, 600.0 * 64 * 18, 600);
  tray.of = cluster_part::tray;
  component wrong = stopper("wrong", cluster_part::tray, 10.0 * day * 64 * 18, 600);
  wrong.of = cluster_part::tray;
  wrong.effect = failure_effect::corrupts;
  wrong.detection = secs(hour);
  s.failures.components = {tray, wrong};
  s.duration = seconds::from_base(30 * day);
  s.recovery.mode = recovery_mode::elastic;
  CHECK(run_by_queue(s, 1).useful_share() < 0.01);
  s.recovery.mode = recovery_mode::replica;
  // Two hours of a replica in 10 minutes are twelve out of 64 at a time; three stops of the whole cost little.
  const operation_outcome o = run_by_queue(s, 1);
  CHECK(o.useful_share() == Approx(1 - 12.0 / 64).margin(0.04));
  CHECK(total(o) == Approx(static_cast<double>(s.cluster.gpus()) * s.duration.base()));
}

TEST_CASE("A slow part of a job whose replicas recover alone stops those on it") {
  operation_setup s = slowed(plain_setup(10, 8, 16), cluster_part::tray, 3000 * day, true);
  s.replicas = 16;
  s.recovery.mode = recovery_mode::replica;
  s.recovery.init = secs(hour);
  const operation_outcome alone = run_by_queue(s, 1);
  CHECK(alone.whole_stops == 0);
  CHECK(spent(alone, gpu_use::initialising) == 0);
  s.recovery.mode = recovery_mode::restart;
  CHECK(run_by_queue(s, 1).useful_share() < alone.useful_share());
}

TEST_CASE("Until a job ends every GPU-second has a use, and after its end none has another than that") {
  for (const recovery_mode mode : all_modes)
    for (const double days : {3.0, 20.0, 1000.0}) {  // ends early, late, never
      operation_setup s = eventful(mode);
      s.work = seconds::from_base(days * day);
      const operation_outcome o = run_by_queue(s, 7);
      INFO("mode " << static_cast<int>(mode) << ", " << days << " days of work");
      CHECK(o.finished.has_value() == (days < 60));
      const auto gpus = static_cast<double>(s.cluster.gpus());
      CHECK(spent(o, gpu_use::after_end) == Approx(gpus * (s.duration.base() - o.wall)).margin(1));
      CHECK(total(o) - spent(o, gpu_use::after_end) == Approx(gpus * o.wall));
    }
}

TEST_CASE("A job with an amount of work ends when it is done") {
  operation_setup s = renewal(1e12, 3600, 60, 600);
  s.work = seconds::from_base(10.5 * 3600);
  const operation_outcome o = run_by_queue(s, 1);
  REQUIRE(o.finished);
  CHECK(*o.finished == Approx(10.5 * 3600 + 10 * 60));
  CHECK(o.progress == Approx(10.5 * 3600));
  CHECK(o.useful_share() == Approx(10.5 * 3600 / (10.5 * 3600 + 600)));
}

TEST_CASE("The interval that is taken for the best is, also where failures leave only older copies") {
  for (const std::int64_t every : {1, 4, 16}) {
    operation_setup s = plain_setup(6, 4, 16);
    s.failures.components = {stopper("gpu", cluster_part::tray, 300 * day, hour),
                             stopper("program", cluster_part::process, 300 * day, 0)};
    s.save.pause = secs(10);
    save_tier drives = s.save.tiers.front();
    drives.to = save_place::nvme;
    s.save.tiers.insert(s.save.tiers.begin(), drives);
    s.save.tiers.back().every = every;
    const std::vector<save_times> tiers = tiers_of(s);
    // Half of the failures leave the drives, the others only what is in the store.
    const double share_of_trays = 64.0 / 108, hardware = 432 * share_of_trays, programs = 256;
    CHECK(saves_between_copies(s, tiers) ==
          Approx((hardware * static_cast<double>(every) + programs) / (hardware + programs)));
    s.save.interval.reset();
    const seconds best = save_interval(s, tiers);
    const auto share = [&](double factor) {
      operation_setup at = s;
      at.save.interval = best * factor;
      return useful_share(at, 60).mean;
    };
    const double now = share(1);
    INFO("every " << every << ": " << best.base() << " s");
    CHECK(now > share(0.4));
    CHECK(now > share(2.5));
    CHECK(daly_useful_share(costs_at(s, tiers, best), best) == Approx(now).margin(0.006));
  }
}

TEST_CASE("The interval that is taken for the best is, whatever makes the job go back") {
  component wrong = stopper("wrong", cluster_part::tray, 300 * day, hour);
  wrong.effect = failure_effect::corrupts;
  wrong.detection = secs(600);
  component rarely = wrong;
  rarely.mtbf = secs(6000 * day);
  const component often_stops = stopper("gpu", cluster_part::tray, 300 * day, hour),
                  hardly_stops = stopper("gpu", cluster_part::tray, 1e6 * day, hour);
  struct {
    recovery_mode mode;
    std::vector<component> fails;
  } const cases[] = {{recovery_mode::restart, {hardly_stops, wrong}},
                     {recovery_mode::elastic, {often_stops, wrong}},
                     {recovery_mode::replica, {often_stops, rarely}}};  // a replica's failure makes none go back
  for (const auto& c : cases) {
    operation_setup s = plain_setup(6, 4, 16);
    s.replicas = 4;
    s.save.pause = secs(10);
    s.recovery.mode = c.mode;
    s.failures.components = c.fails;
    s.save.interval.reset();
    const seconds best = save_interval(s, tiers_of(s));
    const auto share = [&](double factor) {
      operation_setup at = s;
      at.save.interval = best * factor;
      return useful_share(at, 60).mean;
    };
    INFO("mode " << static_cast<int>(c.mode) << ": " << best.base() << " s");
    const double now = share(1);
    CHECK(now > share(0.4));
    CHECK(now > share(2.5));
  }
}

TEST_CASE("A job that nothing makes go back saves once a day") {
  operation_setup s = plain_setup(6, 4, 16);
  s.replicas = 4;
  s.save.pause = secs(10);
  s.recovery.mode = recovery_mode::replica;
  s.failures.components = {stopper("gpu", cluster_part::tray, 300 * day, hour),
                           stopper("program", cluster_part::process, 300 * day, 0)};
  const std::vector<save_times> tiers = tiers_of(s);
  CHECK(best_interval(s, tiers).base() == day);
  CHECK(best_tiers(s, tiers, {}).front().failures_a_day == 0);
  s.recovery.min_replicas = 4;  // each is needed
  CHECK(best_interval(s, tiers).base() < hour);
}

/// A job whose programs, trays and racks fail, with drives, a neighbour's memory and a store.
operation_setup three_tiers() {
  operation_setup s = plain_setup(10, 8, 16);
  component rack = stopper("rack", cluster_part::rack, 60 * day, 3 * hour);
  rack.of = cluster_part::rack;
  component row = stopper("row", cluster_part::row, 60 * day, hour);
  row.of = cluster_part::row;
  s.failures.components = {stopper("program", cluster_part::process, 512 * 4 * hour, 0),
                           stopper("gpu", cluster_part::tray, 720 * 12 * hour, hour), rack, row};
  s.save.tiers.clear();
  const std::pair<save_place, double> places[] = {
      {save_place::nvme, 1}, {save_place::neighbour, 6}, {save_place::store, 60}};
  s.save.state = bytes::from_base(1e12);
  for (const auto& [to, stall] : places) {
    save_tier t;
    t.to = to;
    t.asynchronous = false;
    t.write = t.read = bandwidth::from_base(1e12 / stall / 128);
    s.save.tiers.push_back(t);
  }
  s.save.interval.reset();
  s.recovery.decide = secs(60);
  s.duration = seconds::from_base(120 * day);
  return s;
}

TEST_CASE("Of one tier the best multiple is one, and its interval Young's") {
  operation_setup s = renewal(6 * hour, hour, 30, 300);
  const std::vector<tier_use> one = best_tiers(s, tiers_of(s), {});
  REQUIRE(one.size() == 1);
  CHECK(one[0].every == 1);
  CHECK(one[0].failures_a_day == Approx(4));
  CHECK(one[0].interval->base() == Approx(std::sqrt(2 * 30 * 6 * hour)));
}

TEST_CASE("Each tier has the failures that leave no faster copy, and multiples as its costs say") {
  const operation_setup s = three_tiers();
  const std::vector<save_times> tiers = tiers_of(s);
  const std::vector<tier_use> best = best_tiers(s, tiers, {});
  CHECK(best[0].failures_a_day == Approx(6));  // programs
  CHECK(best[1].failures_a_day == Approx(2 * 128.0 / 180 + 8 / 60.0 * 128 / 144).epsilon(0.1));
  CHECK(best[2].failures_a_day == Approx(2 / 60.0 * 128 / 180).epsilon(0.5));
  for (std::size_t t = 1; t < 3; ++t) {
    CHECK(best[t].every % best[t - 1].every == 0);
    CHECK(best[t].interval.value() > best[t - 1].interval.value());
    // Alone the tiers would be as far apart as Young says; nested they are close to it.
    const double ratio = *best[t].interval / *best[0].interval;
    CHECK(static_cast<double>(best[t].every) == Approx(ratio).epsilon(0.35));
  }
}

TEST_CASE("Silent corruption needs copies in the store, and no tier goes without one for a day") {
  operation_setup s = three_tiers();
  s.failures.components.resize(1);  // programs only: drives would do
  const std::vector<tier_use> drives = best_tiers(s, tiers_of(s), {});
  CHECK_FALSE(drives[2].interval);
  CHECK(static_cast<double>(drives[2].every) * 0.5 * drives[0].interval->base() < day);
  component wrong = stopper("wrong", cluster_part::gpu, 720 * day, hour);
  wrong.effect = failure_effect::corrupts;
  wrong.detection = secs(hour);
  s.failures.components.push_back(wrong);
  const std::vector<tier_use> both = best_tiers(s, tiers_of(s), {});
  CHECK(both[2].failures_a_day == Approx(128.0 / 180));
  CHECK(both[2].every < drives[2].every);
}

TEST_CASE("Corruption by a program or at the site meets the job whole, by hardware its share of the cluster") {
  operation_setup s = plain_setup(10, 2, 18);  // a fifth of the cluster
  s.failures.components = {stopper("program", cluster_part::process, 100 * day, 0)};
  for (const cluster_part of : {cluster_part::process, cluster_part::site, cluster_part::gpu}) {
    component wrong = stopper("wrong", cluster_part::tray, 72 * day, hour);
    wrong.of = of;
    wrong.effect = failure_effect::corrupts;
    wrong.detection = secs(hour);
    operation_setup with = s;
    with.failures.components.push_back(wrong);
    const double more = best_tiers(with, tiers_of(with), {}).back().failures_a_day -
                        best_tiers(s, tiers_of(s), {}).back().failures_a_day;
    CHECK(more == Approx(of == cluster_part::site ? 1 / 72.0 : 2));
  }
}

TEST_CASE("Losses in parts that share trays do not add up: each part has its own redundancy") {
  for (const cluster_part of : {cluster_part::leaf, cluster_part::gpu})
    for (const bool ages : {false, true}) {
      INFO(cluster_part_names[static_cast<std::size_t>(of)] << (ages ? ", ages" : ""));
      operation_setup s = plain_setup(4, 4, 18);
      component twin = stopper("twin", of == cluster_part::leaf ? of : cluster_part::tray, 20 * day, day);
      twin.of = of;
      twin.each = 2;
      twin.tolerated = 1;
      twin.ages = ages;
      const double parts = of == cluster_part::leaf ? 4 * 4 : 4 * 72;
      if (of == cluster_part::gpu) twin.mtbf = secs(200 * day);
      s.cluster.rails = 4;
      s.failures.components = {twin};
      double stops = 0, failures = 0;
      constexpr int seeds = 20;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const operation_outcome o = run_by_queue(s, seed);
        stops += static_cast<double>(o.stops) / seeds;
        failures += static_cast<double>(o.failures) / seeds;
      }
      // Each loss meets another of its part in repair: a time of repair at the rate of the part.
      const double rate = 2 / twin.mtbf.base(), at_once = failures * rate * day * (ages ? 0.5 : 1);
      CHECK(failures == Approx(parts * rate * 60 * day).epsilon(0.1));
      CHECK(stops < 2 * at_once);
      CHECK(stops > 0.4 * at_once);
    }
}

/// Events that a run handles.
std::int64_t events_of(const operation_setup& s) {
  operation_state state = begin_operation(s, 1);
  std::multimap<double, operation_event> due;
  for (std::int64_t handled = 0;; ++handled) {
    for (const operation_order& o : state.orders)
      if (o.at <= s.duration.base()) due.emplace(o.at, o.what);
    state.orders.clear();
    if (due.empty()) return handled;
    const auto next = due.extract(due.begin());
    happen(state, next.key(), next.mapped());
  }
}

TEST_CASE("Events of a run follow its failures, not its GPUs nor its saves") {
  for (const recovery_mode mode : all_modes) {
    INFO(recovery_mode_names[static_cast<std::size_t>(mode)]);
    const auto with = [mode](std::int64_t racks, double failures_a_day, double interval) {
      operation_setup s = plain_setup(racks, racks, 16);
      s.recovery.mode = mode;
      s.recovery.decide = secs(60);
      s.replicas = racks;
      s.failures.components = {
          stopper("gpu", cluster_part::tray, static_cast<double>(s.cluster.gpus()) * day / failures_a_day, hour)};
      s.save.interval = seconds::from_base(interval);
      return static_cast<double>(events_of(s));
    };
    const double few = with(40, 10, hour);
    CHECK(few > 2 * 10 * 60 * 0.9);  // a failure and its repair, at least
    CHECK(with(640, 10, hour) < 1.2 * few);
    CHECK(with(40, 10, 60) < 1.2 * few);
    CHECK(with(40, 80, hour) < 12 * few);
  }
}

TEST_CASE("Nested intervals that are taken for the best are, as runs say") {
  operation_setup s = three_tiers();
  const auto with = [&](std::int64_t second, std::int64_t third) {
    s.save.tiers[1].every = second;
    s.save.tiers[2].every = third;
    return useful_share(s, 12).mean;
  };
  const std::vector<tier_use> best = best_tiers(s, tiers_of(s), {});
  const double most = with(best[1].every, best[2].every);
  const double noise = 3e-4;
  CHECK(most > with(1, 1) + noise);
  CHECK(most > with(best[1].every, best[1].every) + noise);  // the store as often as neighbours
  CHECK(most > with(best[1].every * 6, best[2].every * 6));
  CHECK(most > with(best[1].every, best[2].every * 12) - noise);
  CHECK(most > with(best[1].every * 2, best[2].every * 2) - noise);
}

TEST_CASE("Work that a job without k of n replicas does is in proportion, also if it keeps its batch") {
  operation_setup s = plain_setup(1, 1, 18);
  s.recovery.mode = GENERATE(recovery_mode::elastic, recovery_mode::replica);
  s.replicas = 18;
  component tray = stopper("tray", cluster_part::tray, 30 * day, 6 * hour);
  tray.of = cluster_part::tray;
  s.failures.components = {tray};
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    s.recovery.batch = short_batch::shrinks;
    const operation_outcome o = run_by_queue(s, seed);
    // GPU-time of steps is useful as it is: one replica's GPUs stand for one eighteenth of the work.
    const double worked = spent(o, gpu_use::useful) + spent(o, gpu_use::redone);
    CHECK(o.progress * 72 == Approx(spent(o, gpu_use::useful)));
    CHECK(spent(o, gpu_use::left_out) + spent(o, gpu_use::slow) == Approx(0).margin(1e-6 * worked));
    CHECK(worked < 72 * s.duration.base());
    // With micro-batches that cannot be divided evenly some GPUs wait: 4 become 5 with 17 of 18.
    s.recovery.batch = short_batch::kept;
    s.micro_batches = 4;
    const operation_outcome kept = run_by_queue(s, seed);
    CHECK(kept.progress < o.progress);
    CHECK(spent(kept, gpu_use::slow) > 0);
    CHECK(total(kept) == Approx(72 * s.duration.base()));
    // With 17 x 16 x 15 x 14 any of the numbers divides.
    s.micro_batches = 17 * 16 * 15 * 14;
    CHECK(run_by_queue(s, seed).progress == Approx(o.progress).epsilon(1e-4));
  }
}

}  // namespace
}  // namespace nvlsim
