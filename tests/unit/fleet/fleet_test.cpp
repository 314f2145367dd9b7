#include "nvlsim/fleet/fleet.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace nvlsim {
namespace {

/// A replica of 8 GPUs that serves up to 10 requests a second, within its limits up to 8.
replica_curve curve() { return {{{1, 1, 0.2, 5, 4000}, {8, 1, 0.4, 8, 8000}, {10, 0.5, 1.0, 10, 9000}}}; }

fleet_service service(std::vector<double> load) {
  fleet_service s;
  s.name = "chat";
  s.gpus = 8;
  s.curve = curve();
  s.load = {std::move(load), 3600};
  s.ttft_limit_s = 2;
  return s;
}

fleet_spec fleet_of(std::vector<fleet_service> services) {
  fleet_spec f;
  f.services = std::move(services);
  f.racks = 2;
  f.gpus_per_rack = 72;
  return f;
}

double settled(const service_outcome& o) { return o.served + o.dropped; }

TEST_CASE("A curve is linear between its points and constant outside") {
  const replica_curve c = curve();
  REQUIRE(c.at(4.5).e2e_s == Approx(6.5));
  REQUIRE(c.at(9).attained == Approx(0.75));
  REQUIRE(c.at(0).power_W == Approx(4000));
  REQUIRE(c.at(50).ttft_s == Approx(1.0));
  REQUIRE(c.sustained(0) == Approx(10));
  REQUIRE(c.sustained(0.9) == Approx(8.4));  // from all at 8 to half at 10
  REQUIRE(load_profile{{0, 100}, 3600}.at(1800) == Approx(50));
  REQUIRE(load_profile{{0, 100}, 3600}.at(3600 + 900) == Approx(75));
  REQUIRE(load_profile{{0, 100}, 3600}.at(7200 + 1800) == Approx(50));
}

TEST_CASE("Enough fixed replicas serve all of a day, and their GPUs are paid for all of it") {
  fleet_service s = service({40, 40});
  s.scaler.max_replicas = 8;  // 5 requests a second each
  const service_outcome o = play_fleet(fleet_of({s}), 1).services[0];
  REQUIRE(o.requests == Approx(40.0 * 86400));
  REQUIRE(o.availability() == Approx(1));
  REQUIRE(o.slo_share() == Approx(1));
  REQUIRE(o.ready_gpu_s == Approx(64.0 * 86400));
  REQUIRE(o.ttft_s == Approx(curve().at(5).ttft_s));
  REQUIRE(o.energy_J == Approx(8 * curve().at(5).power_W * 86400));
  REQUIRE(o.starts == 0);
}

TEST_CASE("Lives of replicas add up to what is counted, whatever ends them") {
  fleet_service first = service({20, 200}), second = service({100, 100});
  first.start_s = 600;
  first.scaler = {scaling_policy::reactive, 1, 16, 0.8, 60, 300};
  second.scaler = {scaling_policy::fixed, 1, 16};
  fleet_spec f = fleet_of({first, second});
  f.preempt = true;
  f.failures = {1e6, 60, 7200};
  f.machine_gpus = 4;
  CHECK(play_fleet(f, 3).lives.empty());
  f.keeps_lives = true;
  const fleet_outcome o = play_fleet(f, 3);
  CHECK(o.lives_left_out == 0);
  for (std::size_t i = 0; i < 2; ++i) {
    double ready = 0, starting = 0;
    std::int64_t failed = 0, evicted = 0;
    for (const replica_life& x : o.lives) {
      if (x.service != i) continue;
      CHECK(x.begin_s <= x.ready_s);
      CHECK(x.ready_s <= x.end_s);
      ready += x.end_s - x.ready_s;
      starting += x.ready_s - x.begin_s;
      failed += x.how == replica_end::fails;
      evicted += x.how == replica_end::evicted;
    }
    // Ticks count whole, so that each life may differ by two of them.
    const double off = 2 * f.tick_s * static_cast<double>(o.lives.size());
    CHECK(ready * 8 == Approx(o.services[i].ready_gpu_s).margin(off * 8));
    CHECK(starting * 8 == Approx(o.services[i].starting_gpu_s).margin(off * 8));
    CHECK(failed == o.services[i].failures);
    CHECK(evicted == o.services[i].evicted);
  }
  CHECK(o.services[0].starts > 0);
  CHECK(o.services[0].failures + o.services[1].failures > 0);
  CHECK(o.services[1].evicted > 0);
}

TEST_CASE("Too few replicas serve what they can and drop the rest") {
  fleet_service s = service({40, 40});
  s.scaler.max_replicas = 3;
  const service_outcome o = play_fleet(fleet_of({s}), 1).services[0];
  // A patience of 30 s of 30 requests a second waits at the end.
  REQUIRE(o.served == Approx(30.0 * 86400));
  REQUIRE(settled(o) + 900 == Approx(o.requests));
  REQUIRE(o.slo_share() == Approx(0).margin(1e-3));  // who waits 30 s keeps no limit of 2 s
  REQUIRE(o.short_s == Approx(86400));
  REQUIRE(o.ttft_s == Approx(31).epsilon(1e-2));
}

TEST_CASE("A fleet that follows the load uses fewer GPUs than one for its peak") {
  std::vector<double> day;
  for (int h = 0; h < 24; ++h) day.push_back(60 - 40 * std::cos(2 * 3.14159265358979 * h / 24));
  fleet_service fixed = service(day);
  fixed.scaler.max_replicas = 15;
  fleet_service reactive = fixed;
  reactive.scaler = {scaling_policy::reactive, 1, 18, 0.7, 60, 300};
  reactive.start_s = 120;
  const service_outcome all = play_fleet(fleet_of({fixed}), 1).services[0];
  const service_outcome some = play_fleet(fleet_of({reactive}), 1).services[0];
  REQUIRE(some.availability() == Approx(1));
  REQUIRE(some.ready_gpu_s < 0.75 * all.ready_gpu_s);
  REQUIRE(some.starts > 5);
  REQUIRE(some.max_ready == 15);  // 100 of 7 each
  // What is paid beyond the load at its target is the rounding up and the cooldown.
  REQUIRE(some.ready_gpu_s > 8 * 60.0 * 86400 / 7);
}

TEST_CASE("A load that jumps loses requests for as long as replicas take to start, unless they start before") {
  std::vector<double> step(48, 10);
  for (std::size_t i = 24; i < 48; ++i) step[i] = 90;
  fleet_service s = service(step);
  s.load.step_s = 1800;
  s.load.requests_per_s[23] = 10;
  s.scaler = {scaling_policy::reactive, 1, 18, 0.7, 60, 300};
  s.patience_s = 10;
  double before = 1;
  for (const double start : {60.0, 300.0, 900.0}) {
    s.start_s = start;
    const double available = play_fleet(fleet_of({s}), 1).services[0].availability();
    REQUIRE(available < before + 1e-12);
    before = available;
  }
  REQUIRE(before < 0.999);
  s.scaler.policy = scaling_policy::scheduled;
  REQUIRE(play_fleet(fleet_of({s}), 1).services[0].availability() == Approx(1));
}

TEST_CASE("Replicas that start together share the store they load from") {
  std::vector<double> jump(48, 10);
  for (std::size_t i = 24; i < 48; ++i) jump[i] = 30;
  fleet_service s = service(jump);
  s.load.step_s = 1800;
  s.scaler = {scaling_policy::scheduled, 1, 18, 1, 60, 1e6};
  s.from_store = fleet_load{100e9, 2e9, 10, 5};
  s.start_s = 10 + 50 + 5;
  fleet_spec f = fleet_of({s});
  f.tick_s = 1;
  f.duration_s = 86400;
  const auto mean_start = [](const service_outcome& o) {
    return o.starting_gpu_s / 8 / static_cast<double>(o.starts);
  };
  // The load rises within half an hour, so that replicas come one after the other: nobody shares.
  const service_outcome alone = play_fleet(f, 1).services[0];
  REQUIRE(alone.starts >= 2);
  REQUIRE(mean_start(alone) == Approx(65).margin(1.5));
  f.store_read = 1e9;
  REQUIRE(mean_start(play_fleet(f, 1).services[0]) == Approx(10 + 100 + 5).margin(1.5));
  // Four replicas that fail all the time load at once.
  f.services[0].scaler = {scaling_policy::fixed, 4, 4, 1, 60, 300};
  f.failures = {400, 0, 1};
  f.machine_gpus = 8;
  f.duration_s = 20'000;
  f.store_read = 1e18;
  const double unlimited = mean_start(play_fleet(f, 1).services[0]);
  f.store_read = 2e9;
  const double shared = mean_start(play_fleet(f, 1).services[0]);
  REQUIRE(shared > 1.2 * unlimited);
  REQUIRE(shared < 4 * unlimited);
}

TEST_CASE("Failures come at their rate, lose what is in flight, and take machines for the time of repair") {
  fleet_service s = service({40, 40});
  s.scaler = {scaling_policy::reactive, 1, 18, 0.5, 60, 300};  // 8 replicas
  s.start_s = 300;
  fleet_spec f = fleet_of({s});
  f.duration_s = 30 * 86400.0;
  f.failures = {.gpu_mtbf_s = 20 * 86400.0, .detection_s = 30, .repair_s = 7200};
  f.machine_gpus = 4;
  const fleet_outcome all = play_fleet(f, 7);
  const service_outcome& o = all.services[0];
  const double expected = 64 * 30 / 20.0;  // GPUs x days / mean days
  REQUIRE(o.failures == Approx(expected).margin(3 * std::sqrt(expected)));
  // For 30 s of detection 5 requests a second and an eighth of those that come again, and 6.7 s in flight.
  REQUIRE(o.retried / static_cast<double>(o.failures) ==
          Approx(5 * (30 * 8 / 7.0 + curve().at(5).e2e_s)).epsilon(0.05));
  REQUIRE(all.failed_gpu_s == Approx(4 * 7200.0 * static_cast<double>(o.failures)).epsilon(0.02));
  REQUIRE(settled(o) == Approx(o.requests).epsilon(1e-6));
  REQUIRE(o.slo_share() < 1);
  REQUIRE(play_fleet(f, 7).services[0].served == o.served);
  f.failures.gpu_mtbf_s *= 10;
  REQUIRE(play_fleet(f, 7).services[0].slo_share() > o.slo_share());
}

TEST_CASE("A failure takes the GPU's machine, with every replica that has GPUs on it") {
  fleet_service small = service({40, 40});
  small.gpus = 1;
  small.scaler = {scaling_policy::fixed, 1, 36};
  fleet_spec f = fleet_of({small});
  f.duration_s = 30 * 86400.0;
  f.machine_gpus = 4;
  f.failures = {.gpu_mtbf_s = 20 * 86400.0, .detection_s = 0, .repair_s = 7200};
  const fleet_outcome o = play_fleet(f, 7);
  const double expected = 36 * 30 / 20.0;
  CHECK(static_cast<double>(o.failed_machines) == Approx(expected).margin(3 * std::sqrt(expected)));
  CHECK(o.failed_gpu_s == Approx(4 * 7210.0 * static_cast<double>(o.failed_machines)).epsilon(0.01));
  // 36 replicas fill nine machines, those that come back fill one again.
  CHECK(o.services[0].failures > 3 * o.failed_machines);
  CHECK(o.services[0].failures <= 4 * o.failed_machines);
  // Two services on one machine fail together; a replica of eight GPUs fails with either of its machines.
  fleet_service other = small;
  small.scaler.max_replicas = other.scaler.max_replicas = 2;
  f.services = {small, other};
  const fleet_outcome both = play_fleet(f, 7);
  CHECK(both.services[0].failures == 2 * both.failed_machines);
  CHECK(both.services[1].failures == 2 * both.failed_machines);
  f.services = {service({40, 40})};
  f.services[0].scaler.max_replicas = 8;
  const fleet_outcome large = play_fleet(f, 7);
  CHECK(large.services[0].failures == large.failed_machines);
}

TEST_CASE("Nothing starts in the place of a replica whose failure is not noticed, and its requests come again") {
  fleet_service s = service({40, 40});
  s.scaler = {scaling_policy::fixed, 1, 8};
  fleet_spec f = fleet_of({s});
  f.duration_s = 30 * 86400.0;
  f.machine_gpus = 4;
  double lost_before = 0;
  for (const double detection : {0.0, 10.0, 30.0, 600.0, 3600.0}) {
    INFO(detection);
    f.failures = {.gpu_mtbf_s = 20 * 86400.0, .detection_s = detection, .repair_s = 7200};
    const fleet_outcome all = play_fleet(f, 7);
    const service_outcome& o = all.services[0];
    // An eighth of the requests goes there for all of this time, and of those that come again.
    const double lost = o.retried / static_cast<double>(o.failures),
                 each = 5 * (detection * 8 / 7 + curve().at(5).e2e_s);
    CHECK(lost == Approx(each).epsilon(0.05));
    CHECK(lost > lost_before);
    CHECK(o.availability() == Approx(1).epsilon(1e-5));  // eight replicas could serve 80 requests/s, seven 70
    CHECK(o.ready_gpu_s == Approx(64 * f.duration_s).epsilon(1e-3));  // paid, alive or not
    lost_before = lost;
  }
}

TEST_CASE("A duration that ticks do not divide is played and paid to its end") {
  fleet_service s = service({40, 40});
  s.scaler.max_replicas = 8;
  fleet_spec f = fleet_of({s});
  for (const double duration : {1.0, 65.0, 3905.0}) {
    f.duration_s = duration;
    const service_outcome o = play_fleet(f, 1).services[0];
    INFO(duration);
    CHECK(o.requests == Approx(40 * duration));
    CHECK(o.ready_gpu_s == Approx(64 * duration));
    CHECK(o.energy_J == Approx(8 * curve().at(5).power_W * duration));
  }
}

TEST_CASE("Energy is kept by the hour in which it is drawn") {
  fleet_service s = service({10, 80, 10, 10});
  s.scaler.max_replicas = 10;
  fleet_spec f = fleet_of({s});
  f.tick_s = 700;  // across hours
  f.duration_s = 26 * 3600.0;
  const fleet_outcome o = play_fleet(f, 1);
  double sum = 0;
  for (const double e : o.energy_by_hour_J) sum += e;
  CHECK(sum == Approx(o.services[0].energy_J));
  CHECK(o.energy_by_hour_J[1] > o.energy_by_hour_J[3]);                             // by load
  CHECK(o.energy_by_hour_J[2] < o.energy_by_hour_J[1] * 1.5);                       // one day of hour 2
  CHECK(o.energy_by_hour_J[1] == Approx(2 * o.energy_by_hour_J[5]).epsilon(0.02));  // two days of hour 1
}

TEST_CASE("Services share racks in order of priority") {
  fleet_service first = service({80, 80}), second = service({80, 80});
  first.scaler.max_replicas = second.scaler.max_replicas = 10;
  const fleet_outcome o = play_fleet(fleet_of({first, second}), 1);  // 18 replicas fit
  REQUIRE(o.services[0].ready_gpu_s == Approx(80.0 * 86400));
  REQUIRE(o.services[1].ready_gpu_s == Approx(64.0 * 86400));
  REQUIRE(o.services[1].unplaced_s > 0);
  REQUIRE(o.services[1].dropped == 0);  // 8 x 10 requests a second are just enough
}

TEST_CASE("With preemption the first service takes replicas of the last, which keeps its least") {
  // 144 GPUs hold 18 replicas. The first service wants 15 at its peak and 2 else; the last all that is left.
  fleet_service first = service({10, 120, 10, 10}), last = service({80, 80, 80, 80});
  first.scaler = {scaling_policy::scheduled, 1, 15, 0.8, 60, 300};
  last.scaler = {scaling_policy::scheduled, 4, 16, 0.8, 60, 300};
  first.start_s = last.start_s = 120;
  fleet_spec f = fleet_of({first, last});
  const fleet_outcome waits = play_fleet(f, 1);
  f.preempt = true;
  const fleet_outcome takes = play_fleet(f, 1);
  CHECK(waits.services[0].unplaced_s > 0);
  CHECK(waits.services[1].evicted == 0);
  CHECK(takes.services[1].evicted > 0);
  CHECK(takes.services[0].evicted == 0);
  CHECK(takes.services[0].unplaced_s < waits.services[0].unplaced_s);
  CHECK(takes.services[0].availability() > waits.services[0].availability());
  CHECK(takes.services[1].availability() < waits.services[1].availability());
  CHECK(takes.services[1].retried > 0);
  for (const fleet_sample& s : takes.samples[1]) CHECK(s.ready + s.starting >= 4);
  for (const service_outcome& o : takes.services) CHECK(settled(o) == Approx(o.requests).epsilon(1e-3));
  // Replicas of the last that may not leave make no room.
  f.services[1].scaler.min_replicas = 16;
  CHECK(play_fleet(f, 1).services[1].evicted == 0);
}

TEST_CASE("A fleet that cannot be says why") {
  fleet_service s = service({1});
  s.gpus = 100;
  REQUIRE(fleet_problems(fleet_of({s})).size() == 1);
  s.gpus = 72;
  s.scaler.min_replicas = s.scaler.max_replicas = 3;
  REQUIRE(fleet_problems(fleet_of({s}))[0].find("at least 216 GPUs") != std::string::npos);
  s.scaler.min_replicas = 1;
  REQUIRE(fleet_problems(fleet_of({s})).empty());
}

TEST_CASE("Evictions without end are refused, and end in each tick once nothing is in use") {
  for (const bool rack : {false, true}) {
    INFO((rack ? "racks" : "machines"));
    fleet_spec f = fleet_of({service({40, 40})});
    f.services[0].scaler.max_replicas = 10;
    f.duration_s = 3600;
    f.evictions = {1e-6, 0, 3600, rack};
    f.machine_gpus = 4;
    REQUIRE(fleet_problems(f).size() == 1);
    CHECK(fleet_problems(f)[0].find("eviction_after") != std::string::npos);
    // Played all the same, each replica is taken once; its machines, or racks, stay away.
    const fleet_outcome o = play_fleet(f, 1);
    CHECK(o.services[0].served < o.services[0].requests);
    CHECK(o.services[0].reclaimed >= 10);
    f.evictions.after_s = 86400;
    CHECK(fleet_problems(f).empty());
  }
}

TEST_CASE("Spot machines and racks are taken at their rate, with what is in flight beyond the notice") {
  for (const bool rack : {false, true}) {
    INFO((rack ? "racks" : "machines"));
    fleet_service s = service({40, 40});
    s.scaler.max_replicas = 10;  // of 18 that fit
    s.start_s = 300;
    fleet_spec f = fleet_of({s});
    f.duration_s = 40 * 86400.0;
    f.evictions = {rack ? 5 * 86400.0 : 20 * 86400.0, 0, 3600, rack};
    f.machine_gpus = 4;
    double reclaimed = 0, gone = 0, retried = 0, dropped = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const fleet_outcome o = play_fleet(f, seed);
      reclaimed += static_cast<double>(o.services[0].reclaimed) / 5;
      gone += o.reclaimed_gpu_s / 5;
      retried += o.services[0].retried / 5;
      dropped += o.services[0].dropped / 5;
      CHECK(settled(o.services[0]) == Approx(o.services[0].requests).epsilon(1e-3));
    }
    // Ten replicas of two machines each; of racks what is on them.
    if (!rack) CHECK(reclaimed == Approx(20 * 40 / 20.0).epsilon(0.2));
    CHECK(gone == Approx(rack ? 2 * 40 / 5.0 * 72 * 3600 : reclaimed * 4 * 3600).epsilon(0.3));
    CHECK(retried > 0);
    // Nine replicas, or what is left of them, carry the load; those of one rack of the two do not.
    if (rack) CHECK(dropped > 0);
    else CHECK(dropped == 0);
    // A notice longer than a request takes leaves none to be sent again.
    f.evictions.notice_s = 60;
    CHECK(play_fleet(f, 1).services[0].retried == 0);
  }
}

}  // namespace
}  // namespace nvlsim
