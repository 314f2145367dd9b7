#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "nvlsim/operation/cluster_run.hpp"
#include "nvlsim/operation/shared_store.hpp"
#include "unit/operation/setups.hpp"

namespace nvlsim {
namespace {

using test::day;
using test::hour;
using test::spent;

cluster_setup cluster_of(const operation_setup& hardware) {
  cluster_setup c;
  c.shape = hardware.cluster;
  c.failures = hardware.failures;
  c.maintenance = hardware.maintenance;
  c.queue.cluster = {static_cast<int>(hardware.cluster.racks), static_cast<int>(hardware.cluster.trays_per_rack),
                     static_cast<int>(hardware.cluster.gpus_per_tray)};
  c.queue.placement.kind = placement_kind::block;
  c.queue.duration = hardware.duration;
  return c;
}

cluster_member member(std::string name, operation_setup life, std::int64_t racks, std::int64_t per_rack) {
  life.asked = {racks * per_rack, per_rack};
  life.replicas = std::min(life.replicas, life.asked.slots);
  life.maintenance = {};
  return {std::move(name), {}, false, {}, std::move(life)};
}

/// Every GPU-second: of members, of batch jobs, out of service, idle.
double all_time(const cluster_outcome& o) {
  double sum = o.schedule.time.useful + o.schedule.time.redone + o.schedule.time.surplus + o.schedule.time.down +
               o.schedule.time.idle;
  for (const operation_outcome& m : o.members) sum += test::total(m);
  return sum;
}

/// Two training jobs, a service and batch jobs on ten racks where everything happens.
cluster_setup busy(recovery_mode mode) {
  operation_setup hardware = test::eventful(mode);
  // The two that train share a store, so that their intervals change as they come and go.
  hardware.save.state = bytes::from_base(300e9);
  hardware.save.tiers.front().store_write = bandwidth::from_base(1e9);
  hardware.save.interval.reset();
  cluster_setup c = cluster_of(hardware);
  c.members = {member("large", hardware, 5, 16), member("small", hardware, 2, 16),
               member("service", hardware, 1, 12)};
  c.members[1].start = seconds::from_base(3 * day);
  c.members[1].queue = "research";
  c.members[1].life.work = seconds::from_base(20 * day);
  c.members[2].service = true;
  c.members[2].life.replicas = 12;
  c.members[2].life.recovery.mode = recovery_mode::replica;
  c.members[2].life.save.unchanged = true;
  c.queue.policy.queues = {{.name = "", .tier = 1}, {.name = "research", .preemptible = true}};
  c.queue.policy.preempt = true;
  c.batch.users = {"a"};
  c.batch.queues = {"research"};
  for (int i = 0; i < 300; ++i) {
    batch_job j;
    j.name = std::to_string(i);
    j.submit = seconds::from_base(i * 4 * hour);
    j.run = seconds::from_base((1 + i % 30) * hour);
    j.gpus = i % 3 == 0 ? 2 : 4 * (i % 20);
    j.gpus = std::max(1, j.gpus);
    c.batch.jobs.push_back(j);
  }
  return c;
}

TEST_CASE("Each GPU-second of a shared cluster is counted once") {
  const recovery_mode mode = GENERATE(recovery_mode::restart, recovery_mode::elastic, recovery_mode::replica);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const cluster_setup c = busy(mode);
    const cluster_outcome o = run_cluster(c, seed);
    const double all = static_cast<double>(c.shape.gpus()) * c.queue.duration.base();
    CHECK(all_time(o) == Approx(all).epsilon(1e-9));
    CHECK(o.members[0].progress > 0);
    CHECK(o.members[1].finished);
    CHECK(o.members[1].began >= 3 * day);
    CHECK(o.members[2].useful_share() > 0.9);
    CHECK(o.cluster.failures > 100);
    for (const operation_outcome& m : o.members)
      for (const double x : m.gpu_seconds) CHECK(x >= -1e-3);
  }
}

TEST_CASE("A shared cluster is the same each time, and another with another seed") {
  const cluster_setup c = busy(recovery_mode::restart);
  const cluster_outcome a = run_cluster(c, 1), b = run_cluster(c, 1), other = run_cluster(c, 2);
  CHECK(a.schedule.attempts == b.schedule.attempts);
  CHECK(a.members[0].progress == b.members[0].progress);
  CHECK(a.members[0].progress != other.members[0].progress);
}

TEST_CASE("Repairs of trays that a shared cluster notes are its failures, one at a time for each tray") {
  cluster_setup c = busy(recovery_mode::restart);
  c.maintenance = {};
  const cluster_outcome o = run_cluster(c, 1);
  std::map<std::int32_t, double> until;
  double broken = 0;
  CHECK(o.repairs_left_out == 0);
  REQUIRE(o.repairs.size() > 100);
  for (const tray_repair& x : o.repairs) {
    CHECK(x.begin >= until[x.tray]);
    CHECK(x.end >= x.begin);
    CHECK(x.component < static_cast<std::int32_t>(c.failures.components.size()));
    until[x.tray] = x.end;
    broken += x.end - x.begin;
  }
  CHECK(broken <= static_cast<double>(c.shape.trays()) * c.queue.duration.base());
  CHECK(broken > 0);
}

/// Mean useful share of the only job of a cluster.
double share_of_one(const cluster_setup& c, int seeds) {
  double sum = 0;
  for (int i = 1; i <= seeds; ++i) sum += run_cluster(c, static_cast<std::uint64_t>(i)).members[0].useful_share();
  return sum / seeds;
}

TEST_CASE("The only job of a shared cluster is as good as one that is followed alone") {
  SECTION("program failures: Daly's exact form") {
    const operation_setup alone = test::renewal(8 * hour, hour, 60, 600);
    cluster_setup c = cluster_of(alone);
    c.members = {member("job", alone, 1, 18)};
    const double daly = daly_useful_share(
        {seconds::from_base(8 * hour), seconds::from_base(60), seconds::from_base(600)}, seconds::from_base(hour));
    CHECK(share_of_one(c, 40) == Approx(daly).margin(0.005));
  }
  SECTION("everything that can happen, with spares") {
    const recovery_mode mode = GENERATE(recovery_mode::restart, recovery_mode::elastic, recovery_mode::replica);
    operation_setup alone = test::eventful(mode);
    alone.maintenance = {};
    cluster_setup c = cluster_of(alone);
    c.members = {member("job", alone, 8, 16)};
    const test::share_of_seeds followed = test::useful_share(alone, 40);
    // Programs fail by the GPUs of the cluster here, and hit the job where it is; all other draws are the same.
    CHECK(share_of_one(c, 40) == Approx(followed.mean).margin(std::max(0.004, 3 * followed.error)));
  }
}

TEST_CASE("Slow parts of a shared cluster that take more down never do better, and their trays come back") {
  operation_setup base = test::plain_setup(10, 4, 16);
  base.cluster.racks_per_row = 4;
  for (const bool evict : {true, false}) {
    double before = 1;
    for (const cluster_part part : test::parts_down) {
      const operation_setup s = test::slowed(base, part, 8000 * day, evict);
      cluster_setup c = cluster_of(s);
      c.members = {member("large", s, 4, 16), member("small", s, 1, 8)};
      const double share = share_of_one(c, 10);
      INFO("evict " << evict << ", part " << static_cast<int>(part));
      CHECK(share <= before + 0.001);
      before = share;
      // Trays are out for a day after an eviction, and never for longer.
      const cluster_outcome o = run_cluster(c, 1);
      const double gpus = static_cast<double>(trays_of(part, 0, c.shape).count * 4);
      CHECK(o.schedule.time.down <= static_cast<double>(o.cluster.failures) * gpus * day * (1 + 1e-9));
      if (evict && part < cluster_part::row) CHECK(o.schedule.time.down > 0);
      if (!evict || part == cluster_part::site) CHECK(o.schedule.time.down == 0);
    }
  }
}

/// An important job beside six batch jobs of a queue that it may preempt.
cluster_setup beside_fillers(const operation_setup& hardware) {
  cluster_setup c = cluster_of(hardware);
  c.members = {member("important", hardware, 1, 12)};
  for (int i = 0; i < 6; ++i) {
    batch_job j;
    j.name = std::to_string(i);
    j.gpus = 4;
    j.run = hardware.duration;
    c.batch.jobs.push_back(j);
  }
  c.batch.queues = {"filler"};
  c.batch.users = {"u"};
  c.queue.policy.queues = {{.name = "", .tier = 1}, {.name = "filler", .preemptible = true}};
  return c;
}

TEST_CASE("A job without spares of its own takes those of weaker jobs, if it may preempt") {
  operation_setup hardware = test::plain_setup(1, 1, 12);
  hardware.failures.components = {test::stopper("gpu", cluster_part::tray, 100 * day, 24 * hour)};
  hardware.recovery.decide = test::secs(60);
  cluster_setup c = beside_fillers(hardware);
  c.queue.policy.requeue = true;
  const cluster_outcome waits = run_cluster(c, 1);
  c.queue.policy.preempt = true;
  const cluster_outcome takes = run_cluster(c, 1);
  CHECK(spent(waits.members[0], gpu_use::waiting) > 0);
  CHECK(spent(takes.members[0], gpu_use::waiting) < 0.2 * spent(waits.members[0], gpu_use::waiting));
  CHECK(takes.schedule.preemptions > 0);
  CHECK(takes.members[0].progress > waits.members[0].progress);
}

TEST_CASE("A job that may preempt has its trays whether it waits for them, shrinks, or drops replicas") {
  for (const recovery_mode mode : {recovery_mode::restart, recovery_mode::elastic, recovery_mode::replica}) {
    operation_setup hardware = test::plain_setup(1, 1, 12);
    hardware.failures.components = {test::stopper("gpu", cluster_part::tray, 100 * day, 24 * hour)};
    hardware.recovery.decide = test::secs(60);
    hardware.recovery.mode = mode;
    hardware.replicas = 12;
    cluster_setup c = beside_fillers(hardware);
    c.queue.policy.preempt = true;
    const cluster_outcome o = run_cluster(c, 1);
    const double lacking = spent(o.members[0], gpu_use::waiting) + spent(o.members[0], gpu_use::left_out);
    CHECK(lacking < 0.02 * test::total(o.members[0]));
    CHECK(o.schedule.preemptions > 0);
  }
}

TEST_CASE("Stays of moved jobs are on trays that nobody else has, and cover the time that jobs held them") {
  const cluster_setup c = busy(recovery_mode::restart);
  const cluster_outcome o = run_cluster(c, 3);
  REQUIRE(o.schedule.moves.size() > 10);
  const auto moves = moves_by_attempt(o.schedule);
  std::map<int, std::vector<std::pair<double, double>>> whole;  // by node, of jobs that take all of it
  double of_first = 0;
  for (std::size_t a = 0; a < o.schedule.attempts.size(); ++a)
    for (const node_stay& x : stays_of(o.schedule.attempts[a], moves[a])) {
      CHECK(x.begin_s <= x.end_s);
      if (o.schedule.attempts[a].gpus_each == 4) whole[x.node].emplace_back(x.begin_s, x.end_s);
      if (x.job == o.job_of[0]) of_first += (x.end_s - x.begin_s) * 4;
    }
  for (auto& [node, stays] : whole) {
    std::sort(stays.begin(), stays.end());
    for (std::size_t i = 1; i < stays.size(); ++i) REQUIRE(stays[i].first >= stays[i - 1].second - 1e-6);
  }
  CHECK(of_first == Approx(test::total(o.members[0])).epsilon(1e-9));
}

TEST_CASE("A job that is evicted goes on later from its last copy in the store") {
  operation_setup hardware = test::plain_setup(2, 2, 18);
  cluster_setup c = cluster_of(hardware);
  c.members = {member("research", hardware, 2, 18), member("urgent", hardware, 2, 18)};
  c.members[0].queue = "research";
  c.members[1].start = seconds::from_base(10.5 * hour);
  c.members[1].life.work = seconds::from_base(5 * hour);
  c.queue.policy.queues = {{.name = "", .tier = 1}, {.name = "research", .preemptible = true}};
  c.queue.policy.preempt = true;
  const cluster_outcome o = run_cluster(c, 1);
  REQUIRE(o.members[1].finished);
  CHECK(*o.members[1].finished == Approx(15.5 * hour).margin(2));
  // Saves are an hour apart: half an hour is done again, and five hours go to the other.
  CHECK(spent(o.members[0], gpu_use::redone) == Approx(0.5 * hour * 144).margin(1));
  CHECK(o.members[0].progress == Approx(hardware.duration.base() - 5.5 * hour).margin(5));
}

TEST_CASE("A store shared by jobs slows the copies of each") {
  const auto rate = [](double gb) { return bandwidth::from_base(gb * 1e9); };
  const auto size = [](double gb) { return bytes::from_base(gb * 1e9); };
  const auto secs = [](double s) { return seconds::from_base(s); };
  SECTION("a lone writer takes what the closed form says") {
    CHECK(copy_times_together({{size(1000), rate(50), secs(600)}}, rate(100))[0].base() == Approx(20));
    CHECK(copy_times_together({{size(1000), rate(500), secs(600)}}, rate(100))[0].base() == Approx(10));
  }
  SECTION("writers whose trays cannot fill the store together do not slow each other") {
    const auto t =
        copy_times_together({{size(1000), rate(40), secs(60)}, {size(500), rate(50), secs(45)}}, rate(100));
    CHECK(t[0].base() == Approx(25));
    CHECK(t[1].base() == Approx(10));
  }
  SECTION("two that write all the time get half each") {
    const auto t =
        copy_times_together({{size(1000), rate(500), secs(1)}, {size(1000), rate(500), secs(1)}}, rate(100));
    CHECK(t[0].base() == Approx(20).epsilon(0.01));
    CHECK(t[1].base() == Approx(20).epsilon(0.01));
  }
  SECTION("two that write a tenth of the time meet now and then") {
    // Alone 10 s of 100: a copy meets another with probability 0.2, and then overlaps with it by half in the mean.
    const auto t =
        copy_times_together({{size(1000), rate(500), secs(100)}, {size(1000), rate(500), secs(97)}}, rate(100));
    CHECK(t[0].base() > 10.5);
    CHECK(t[0].base() < 12);
  }
  SECTION("sizes and cycles of real jobs") {
    const store_writer large{size(5681.7), rate(128 * 4), secs(163.7)},
        small_one{size(5681.7), rate(64 * 4), secs(163.3)};
    for (const double store : {20.0, 97.3, 100.0, 400.0})
      CHECK(copy_times_together({large, small_one, large}, rate(store))[0].base() >= 5681.7 / store);
  }
  SECTION("more writers take longer") {
    double last = 0;
    std::vector<store_writer> writers;
    for (int n = 1; n <= 4; ++n) {
      writers.push_back({size(1000), rate(500), secs(50 + n)});
      const double t = copy_times_together(writers, rate(100))[0].base();
      CHECK(t > last);
      last = t;
    }
  }
}

TEST_CASE("Jobs that save synchronously to one store stop each other longer, only while both run") {
  operation_setup hardware = test::plain_setup(4, 2, 18);
  save_tier& store = hardware.save.tiers.front();
  store.asynchronous = false;
  store.store_write = bandwidth::from_base(1e9);
  hardware.save.state = bytes::from_base(600e9);  // 600 s alone
  cluster_setup c = cluster_of(hardware);
  c.members = {member("first", hardware, 2, 18)};
  const double alone = run_cluster(c, 1).members[0].useful_share();
  CHECK(alone == Approx(6.0 / 7).margin(1e-3));
  c.members.push_back(member("second", hardware, 2, 18));
  const double together = run_cluster(c, 1).members[0].useful_share();
  CHECK(together < alone - 0.01);
  CHECK(together > 3600.0 / (3600 + 1200) - 1e-3);
  c.members[1].start = hardware.duration / 2.0;
  CHECK(run_cluster(c, 1).members[0].useful_share() == Approx((alone + together) / 2).margin(2e-3));
}

TEST_CASE("Jobs that load at one time share the store, and one that loads alone has it to itself") {
  // The whole site stops: both jobs load at once, each as fast as half the store, or as its own trays read.
  operation_setup hardware = test::plain_setup(4, 1, 18);
  component site = test::stopper("site", cluster_part::site, 3 * day, 1);
  site.of = cluster_part::site;
  site.repair_is_fixed = true;
  hardware.failures.components = {site};
  hardware.save.state = bytes::from_base(1e12);
  hardware.save.tiers.front().read = bandwidth::from_base(1e9);
  hardware.save.tiers.front().store_read = bandwidth::from_base(20e9);
  const auto loading = [&](std::size_t jobs) {
    cluster_setup c = cluster_of(hardware);
    for (std::size_t m = 0; m < jobs; ++m)
      c.members.push_back(member(std::string(1, static_cast<char>('a' + m)), hardware, 1, 18));
    const cluster_outcome o = run_cluster(c, 1);
    std::vector<double> out;
    for (const operation_outcome& x : o.members) {
      CHECK(x.stops > 5);
      out.push_back(spent(x, gpu_use::loading) / 72 / static_cast<double>(x.stops));
    }
    return out;
  };
  CHECK(loading(1)[0] == Approx(1e12 / 18e9));  // what its 18 trays read
  for (const double t : loading(2)) CHECK(t == Approx(2e12 / 20e9));
  for (const double t : loading(4)) CHECK(t == Approx(4e12 / 20e9));
}

}  // namespace
}  // namespace nvlsim
