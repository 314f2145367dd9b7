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
