// Parts that their seller takes back, with a warning.
#include <catch2/catch.hpp>

#include "nvlsim/facility/money.hpp"
#include "unit/operation/setups.hpp"

namespace nvlsim {
namespace {

using namespace test;

/// A job on all of one rack whose trays are taken one by one, `between` apart, and are back at once.
operation_setup spot_job(double between, double save_s, double restart_s, double notice_s) {
  operation_setup s = plain_setup(1, 1, 18);
  component c = stopper("spot", cluster_part::tray, between * 18, 1e-6);
  c.of = cluster_part::tray;
  c.notice = secs(notice_s);
  s.failures.components = {c};
  s.save.interval = seconds::from_base(hour);
  s.save.pause = secs(save_s);
  s.recovery.decide = secs(restart_s);
  return s;
}

TEST_CASE("Evictions leave the share of time that the closed form of spot GPUs says") {
  for (const double notice : {0.0, 120.0}) {
    INFO("notice " << notice);
    const double between = 4 * hour, save = 60, restart = 300;
    operation_setup s = spot_job(between, save, restart, notice);
    if (notice > 0) s.save.interval = seconds::from_base(1e9);  // saves on notice only
    spot_market m;
    m.eviction_after = secs(between * 18);
    m.gpus_per_machine = 4;
    m.notice = secs(notice);
    m.save = secs(save);
    m.restart = secs(restart);
    m.checkpoint_interval = secs(hour);
    const share_of_seeds played = useful_share(s, 60);
    CHECK(std::abs(played.mean - useful_share(m, 72)) < std::max(3 * played.error, 1e-3));
  }
}

TEST_CASE("A warning that is long enough for a save leaves nothing to do again; a shorter one does not help") {
  const auto redone = [](double notice, recovery_mode mode) {
    operation_setup s = spot_job(2 * hour, 60, 300, notice);
    s.recovery.mode = mode;
    s.replicas = 18;
    double out = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) out += spent(run_by_queue(s, seed), gpu_use::redone);
    return out;
  };
  const double without = redone(0, recovery_mode::restart);
  CHECK(without > 0);
  CHECK(redone(59, recovery_mode::restart) == Approx(without).epsilon(0.1));
  CHECK(redone(61, recovery_mode::restart) < without / 50);  // of evictions while it restarts or saves
  CHECK(redone(61, recovery_mode::elastic) < without / 50);
}

TEST_CASE("What is taken back is not in repair, and each GPU-second is counted once") {
  const recovery_mode mode =
      GENERATE(recovery_mode::restart, recovery_mode::elastic, recovery_mode::replica, recovery_mode::redundant);
  const bool whole_rack = GENERATE(false, true);
  operation_setup s = eventful(mode);
  component c = stopper("spot", whole_rack ? cluster_part::rack : cluster_part::tray, 100 * day, 6 * hour);
  c.of = c.takes_down;
  c.notice = secs(30);
  s.failures.components.push_back(c);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const operation_outcome o = run_by_queue(s, seed);
    CHECK(total(o) == Approx(static_cast<double>(s.cluster.gpus()) * s.duration.base()));
    CHECK(spent(o, gpu_use::reclaimed) > 0);
    for (const double x : o.gpu_seconds) CHECK(x >= -1e-3);
  }
  // Only what is taken: with nothing else, that many trays for that long.
  s.failures.components = {c};
  s.maintenance = {};
  double gone = 0, trays = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const operation_outcome o = run_by_queue(s, seed);
    gone += spent(o, gpu_use::reclaimed);
    CHECK(spent(o, gpu_use::repair) == Approx(0).margin(1e-6));
    trays += static_cast<double>(o.failures) * (whole_rack ? 18 : 1);
  }
  CHECK(gone == Approx(trays * 4 * 6 * hour).epsilon(0.15));
}

TEST_CASE("A save before a part goes fills only the tiers that it had time for") {
  // Memory of a neighbour in no time or in 10 s, the store in 100 s; the notice is longer than both.
  for (const double fast : {0.0, 10.0}) {
    INFO("fastest save " << fast << " s");
    operation_setup s = spot_job(1e9 * day, 0, 300, 300);
    s.save.state = bytes::from_base(18 * 1e9);
    save_tier near = s.save.tiers[0];
    near.to = save_place::neighbour;
    near.asynchronous = s.save.tiers[0].asynchronous = false;
    if (fast > 0) near.write = bandwidth::from_base(1e9 / fast);
    s.save.tiers[0].write = bandwidth::from_base(1e7);
    s.save.tiers.insert(s.save.tiers.begin(), near);
    s.save.interval = seconds::from_base(1e9);  // saves on notice only
    s.duration = seconds::from_base(day);
    operation_state state = begin_operation(s, 1);
    const auto copy = [&](std::size_t tier) { return state.clock.copies[tier][0].progress; };
    const auto after = [&](std::int64_t tray) {
      state.departures[0] = {0, tray, hour};
      state.saves_for = 0;
      state.phase = gpu_use::saving;
      happen(state, state.now + hour, {.kind = operation_event_kind::reclaim, .component = 0, .index = 0});
    };
    happen(state, hour, {.kind = operation_event_kind::trays_free});
    const double store_before = copy(1);
    after(3);
    CHECK(copy(0) > 0);
    CHECK(copy(1) == store_before);
  }
}

TEST_CASE(
    "A part that goes without the job leaves its copies as they were, and one that is gone does not go again") {
  operation_setup s = spot_job(1e9 * day, 0, 300, 300);
  s.cluster.racks = 2;  // the job is on the first
  s.save.state = {};    // saves take no time at all
  s.save.interval = seconds::from_base(1e9);
  operation_state state = begin_operation(s, 1);
  happen(state, hour, {.kind = operation_event_kind::trays_free});
  state.departures[0] = {0, 20, hour};
  happen(state, 2 * hour, {.kind = operation_event_kind::reclaim, .component = 0, .index = 0});
  CHECK(state.clock.copies[0][0].progress == 0);
  // Racks that are there again after as long as they are kept are gone for half of the time.
  operation_setup racks = plain_setup(4, 4, 18);
  component c = stopper("spot", cluster_part::rack, 6 * hour, 6 * hour);
  c.of = cluster_part::rack;
  c.notice = secs(1);
  c.repair_is_fixed = true;
  racks.failures.components = {c};
  double evictions = 0, gone = 0;
  constexpr int seeds = 10;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const operation_outcome o = run_by_queue(racks, seed);
    evictions += static_cast<double>(o.failures) / seeds;
    gone += spent(o, gpu_use::reclaimed) / seeds;
  }
  CHECK(evictions == Approx(4 * 60 * day / (12 * hour)).epsilon(0.05));
  CHECK(gone == Approx(0.5 * 4 * 72 * 60 * day).epsilon(0.05));
}

TEST_CASE("Failures of a fleet that are scaled leave what its seller takes alone") {
  operation_setup s = spot_job(hour, 1, 1, 30);
  s.failures.components.push_back(stopper("gpu", cluster_part::tray, 1000 * day, hour));
  s.failures.stops_per_1000_gpu_days = 2;
  const failure_model m = scaled(s.failures, s.cluster);
  CHECK(m.components[0].mtbf.base() == s.failures.components[0].mtbf.base());
  CHECK(m.components[1].mtbf.base() == Approx(500 * day));
  CHECK(stops_per_1000_gpu_days(m.components, s.cluster) == Approx(2));
}

}  // namespace
}  // namespace nvlsim
