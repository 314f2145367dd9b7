#include "nvlsim/operation/checkpoint.hpp"

#include <catch2/catch.hpp>

#include "unit/operation/setups.hpp"

namespace nvlsim {
namespace {

using test::secs;

constant<bandwidth> gb_per_s(double x) { return bandwidth::from_base(x * 1e9); }

/// 5.29 TB, as a checkpoint of a 405B model.
save_policy large_state() {
  save_policy p;
  p.state = bytes::from_base(5.29e12);
  p.to_host = gb_per_s(50);
  p.pause = secs(0.5);
  return p;
}

TEST_CASE("A store takes as long as its own limit or that of the trays together says") {
  const save_policy p = large_state();
  save_tier t;
  t.write = gb_per_s(2);
  t.read = gb_per_s(4);
  t.store_write = gb_per_s(512);
  // 72 trays reach 144 GB/s, 1,024 trays more than the store takes: 10.3 s.
  CHECK(times_of(t, p, 72, 288).drain.base() == Approx(5.29e12 / 144e9));
  CHECK(times_of(t, p, 1024, 4096).drain.base() == Approx(10.3).margin(0.05));
  CHECK(times_of(t, p, 72, 288).load.base() == Approx(5.29e12 / 288e9));
  // What the job waits for is the copy into host memory, unless the save is synchronous.
  CHECK(times_of(t, p, 72, 288).stall.base() == Approx(0.5 + 5.29e12 / (50e9 * 288)));
  t.asynchronous = false;
  CHECK(times_of(t, p, 72, 288).stall.base() == Approx(0.5 + 5.29e12 / 144e9));
  CHECK(times_of(t, p, 72, 288).drain.base() == 0);
}

TEST_CASE("A load takes the time to plan it and to read what was saved: ByteCheckpoint's 405B on 8,960 GPUs") {
  // arXiv 2407.20143: the save takes 51.06 s and its plan, made once, 62 s; a load after a restart 129.49 s.
  save_policy p = large_state();
  p.held = p.state + bytes::from_base(69 * 810e9);  // weights of 70 replicas
  p.network = bandwidth::from_base(400e9);
  p.plan_per_gpu = secs(62.0 / 8960);
  save_tier t;
  t.write = t.read = gb_per_s(50);
  t.store_write = t.store_read = constant<bandwidth>(p.state / seconds::from_base(51.06));
  const save_times one = times_of(t, p, 1120, 8960);
  CHECK(one.drain.base() == Approx(51.06));
  CHECK(one.load.base() == Approx(129.49).epsilon(0.15));
  CHECK((one.load / one.drain) == Approx(129.49 / 51.06).epsilon(0.15));
  p.readers = copy_readers::all;
  CHECK(times_of(t, p, 1120, 8960).load > one.load * 4);
}

TEST_CASE("A load is as long as what is slowest: the trays, the store, or the fabric that passes copies on") {
  save_policy p;
  p.state = bytes::from_base(100e9);
  p.frozen = bytes::from_base(20e9);
  p.held = bytes::from_base(1000e9);
  p.to_host = gb_per_s(50);
  save_tier t;
  t.write = t.read = gb_per_s(2);
  const auto load = [&] { return load_time(t, p, 10, 40).base(); };
  CHECK(load() == Approx(120e9 / 20e9));  // the fabric is not limited
  p.network = bandwidth::from_base(10e9);
  CHECK(load() == Approx(1000e9 / 100e9));  // all that the trays hold comes over it
  p.readers = copy_readers::all;
  CHECK(load() == Approx(1000e9 / 20e9));
  t.store_read = gb_per_s(8);
  CHECK(load() == Approx(1000e9 / 8e9));
  p.readers = copy_readers::one;
  CHECK(load() == Approx(120e9 / 8e9));
  p.plan_per_gpu = secs(0.1);
  CHECK(load() == Approx(120e9 / 8e9 + 4));
  CHECK(times_of(t, p, 10, 40).drain.base() == Approx(100e9 / 20e9));  // frozen weights are not saved
  // Copies on own drives: one of them is read there, the others are passed on. Nothing is planned.
  t = {};
  t.to = save_place::nvme;
  t.write = t.read = gb_per_s(2);
  p.readers = copy_readers::all;
  CHECK(load() == Approx((1000e9 - 120e9) / 100e9));
  t.to = save_place::neighbour;
  CHECK(load() == Approx(1000e9 / 100e9));
}

/// A clock that saves to one store.
work_clock clock_of(double interval, double stall, double drain) {
  save_times t;
  t.stall = seconds::from_base(stall);
  t.drain = seconds::from_base(drain);
  t.survives = cluster_part::site;
  return start_clock({t}, seconds::from_base(interval));
}

TEST_CASE("Work and saves take turns") {
  work_clock c = clock_of(100, 10, 0);
  advance(c, 0, 50, 1);
  CHECK(c.progress == Approx(50));
  advance(c, 50, 55, 1);  // ends within the save
  CHECK(c.progress == Approx(100));
  CHECK(c.saving == Approx(5));
  CHECK(newest_copy(c, cluster_part::rack, 105).progress == 0);
  advance(c, 105, 5 + 330 + 20, 0.5);  // three more cycles and a bit, at half the speed
  CHECK(c.progress == Approx(100 + 0.5 * 320));
  CHECK(c.saves == 4);
  CHECK(newest_copy(c, cluster_part::rack, 460).progress == Approx(100 + 0.5 * 300));
}

TEST_CASE("A long stretch is the same as many short ones") {
  work_clock whole = clock_of(100, 7, 30), parts = whole;
  advance(whole, 0, 12345.6, 1);
  for (double t = 0; t < 12345.6 - 1e-6;) {
    const double dt = std::min(3.7, 12345.6 - t);
    advance(parts, t, dt, 1);
    t += dt;
  }
  CHECK(parts.progress == Approx(whole.progress));
  CHECK(parts.saves == whole.saves);
  CHECK(newest_copy(parts, cluster_part::tray, 12345.6).progress ==
        Approx(newest_copy(whole, cluster_part::tray, 12345.6).progress));
}

TEST_CASE("A copy counts once it has drained") {
  work_clock c = clock_of(100, 1, 50);
  advance(c, 0, 101 + 49, 1);
  CHECK(newest_copy(c, cluster_part::tray, 150).progress == 0);
  advance(c, 150, 2, 1);
  CHECK(newest_copy(c, cluster_part::tray, 152).progress == Approx(100));
  CHECK(clock_of(10, 1, 50).interval == Approx(49));  // saves wait for the copy before
}

TEST_CASE("A restart takes the newest copy that outlives the loss") {
  save_times neighbour, store;
  neighbour.survives = cluster_part::rack;
  store.survives = cluster_part::site;
  store.every = 4;
  store.load = seconds::from_base(60);
  work_clock c = start_clock({neighbour, store}, seconds::from_base(100));
  advance(c, 0, 650, 1);
  CHECK(newest_copy(c, cluster_part::tray, 650).progress == Approx(600));
  CHECK(newest_copy(c, cluster_part::rack, 650).progress == Approx(600));
  const found_copy left = newest_copy(c, cluster_part::row, 650);
  CHECK(left.progress == Approx(400));
  CHECK(left.load.base() == 60);
}

TEST_CASE("Time for work counts the saves on the way") {
  work_clock c = clock_of(100, 10, 0);
  CHECK(time_for(c, 100, 1) == Approx(100));
  CHECK(time_for(c, 101, 1) == Approx(111));
  CHECK(time_for(c, 250, 0.5) == Approx(500 + 40));
  for (const double more : {1.0, 99.0, 100.0, 100.5, 777.0}) {
    work_clock d = c;
    advance(d, 0, time_for(c, more, 0.8), 0.8);
    CHECK(d.progress == Approx(more));
  }
}

}  // namespace
}  // namespace nvlsim
