#include "nvlsim/scheduling/schedule.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>
#include <vector>

#include "nvlsim/scheduling/generator.hpp"
#include "nvlsim/scheduling/queue_summary.hpp"

using namespace nvlsim;

namespace {

batch_job job(double submit, double run, double limit, int gpus, int queue = 0) {
  batch_job j;
  j.submit = seconds::from_base(submit);
  j.run = seconds::from_base(run);
  j.limit = seconds::from_base(limit);
  j.gpus = gpus;
  j.queue = queue;
  return j;
}

queue_setting prompt_setting(queue_cluster c, backfill_kind kind = backfill_kind::conservative) {
  queue_setting s;
  s.cluster = c;
  s.policy.backfill = kind;
  s.policy.interval = s.policy.backfill_interval = s.policy.backfill_resolution = seconds{};
  return s;
}

double start_of(const queue_schedule& out, int job) {
  for (const job_attempt& a : out.attempts)
    if (a.job == job) return a.start_s;
  return -1;
}

constexpr std::int64_t busy_jobs = 200;

/// Jobs of 4 to 128 GPUs and up to 8 h that come faster than 4 racks can run them.
job_list busy() {
  job_generator g = *find_job_profile("philly");
  g.jobs = busy_jobs;
  g.jobs_per_day = 1'000;
  g.mean_run = seconds::from_base(7'200);
  g.median_run = seconds::from_base(1'800);
  g.max_run = seconds::from_base(28'800);
  g.outcomes = g.outcome_time = {1, 0, 0};
  for (size_share& s : g.sizes) s.gpus = std::min(s.gpus * 4, 128);
  return generate_jobs(g, 3);
}

/// Most GPUs in use on a node at once, and the least that a schedule must not hold: found by sweeping over its
/// events.
int most_on_a_node(const queue_schedule& out) {
  std::map<int, std::vector<std::pair<double, int>>> changes;
  for (const job_attempt& a : out.attempts)
    for (const int n : a.nodes) {
      changes[n].emplace_back(a.start_s, a.gpus_each);
      changes[n].emplace_back(a.end_s, -a.gpus_each);
    }
  int most = 0;
  for (auto& [node, list] : changes) {
    std::sort(list.begin(), list.end());  // ends of one time come before starts
    int held = 0;
    for (const auto& [at, gpus] : list) most = std::max(most, held += gpus);
  }
  return most;
}

double sum(const gpu_time& t) { return t.useful + t.redone + t.surplus + t.down + t.idle; }

}  // namespace

TEST_CASE("No node gives more GPUs than it has, and GPU time adds up, under every policy") {
  const job_list jobs = busy();
  for (const placement_kind kind : {placement_kind::tree, placement_kind::block, placement_kind::kueue_preferred,
                                    placement_kind::pack, placement_kind::spread})
    for (const backfill_kind fill : {backfill_kind::none, backfill_kind::easy, backfill_kind::conservative})
      for (const bool whole : {false, true}) {
        queue_setting s = prompt_setting({4, 18, 4}, fill);
        s.placement = {kind, whole, {}};
        s.failures = {seconds::from_base(20 * 86400.0), seconds::from_base(7200), {}, {}};
        s.maintenance = {{seconds::from_base(15'000), seconds::from_base(15'000), 1, 2}};
        const queue_schedule out = schedule_jobs(jobs, s);
        CAPTURE(static_cast<int>(kind), static_cast<int>(fill), whole);
        CHECK(most_on_a_node(out) <= 4);
        CHECK(sum(out.time) == Approx(static_cast<double>(s.cluster.gpus()) * out.elapsed_s));
        CHECK(summarise(jobs, s, out).finished == busy_jobs);
        const auto in_the_racks = [](int n) { return n >= 18 && n < 54; };
        for (const job_attempt& a : out.attempts)
          if (a.start_s < 30'000 && a.end_s > 15'000)
            CHECK(std::none_of(a.nodes.begin(), a.nodes.end(), in_the_racks));
      }
}

TEST_CASE("Equal inputs give equal schedules, and another seed other failures") {
  const job_list jobs = busy();
  queue_setting s = prompt_setting({4, 18, 4});
  s.failures.node_mtbf = seconds::from_base(10 * 86400.0);
  s.failures.node_repair = seconds::from_base(7200);
  const std::vector<job_attempt> once = schedule_jobs(jobs, s).attempts;
  CHECK(once == schedule_jobs(jobs, s).attempts);
  s.seed = 2;
  CHECK_FALSE(once == schedule_jobs(jobs, s).attempts);
}

TEST_CASE("Backfill starts a short job ahead, and only if it delays nobody") {
  // One node of 4 GPUs: 2 are taken until 100, and the first that waits needs 4.
  const job_list jobs{
      {job(0, 100, 100, 2), job(1, 50, 50, 4), job(2, 90, 90, 2), job(3, 97, 97, 2), job(4, 98, 98, 2)},
      {"u"},
      {"q"},
      {}};
  const auto starts = [&](backfill_kind kind) {
    const queue_schedule out = schedule_jobs(jobs, prompt_setting({1, 1, 4}, kind));
    std::vector<double> s;
    for (int j = 0; j < 5; ++j) s.push_back(start_of(out, j));
    return s;
  };
  CHECK(starts(backfill_kind::none) == std::vector<double>{0, 100, 150, 150, 240});
  CHECK(starts(backfill_kind::easy) == std::vector<double>{0, 100, 2, 150, 150});
}

TEST_CASE("EASY never delays the first job that waits") {
  // With exact limits, the first job that waits starts no later than when as many GPUs as it needs have been left.
  job_list jobs = busy();
  for (batch_job& j : jobs.jobs) j.limit = j.run;
  const queue_setting s = prompt_setting({4, 18, 4}, backfill_kind::easy);
  const queue_schedule out = schedule_jobs(jobs, s);
  std::vector<job_attempt> by_job(jobs.jobs.size());
  for (const job_attempt& a : out.attempts) by_job[static_cast<std::size_t>(a.job)] = a;
  int checked = 0;
  double head_since = 0;
  for (std::size_t j = 0; j < by_job.size(); ++j) {
    // It is the first from when it has come and all before it have started.
    head_since = std::max(head_since, jobs.jobs[j].submit.base());
    if (by_job[j].start_s > head_since) {
      ++checked;
      std::vector<std::pair<double, std::int64_t>> ends;  // of jobs that ran when it became the first
      std::int64_t free = s.cluster.gpus();
      for (const job_attempt& a : out.attempts)
        if (a.start_s <= head_since && a.end_s > head_since) {
          const auto held = a.gpus_each * static_cast<std::int64_t>(a.nodes.size());
          ends.emplace_back(a.end_s, held);
          free -= held;
        }
      std::sort(ends.begin(), ends.end());
      // At the latest when all that ran then has left.
      CHECK(by_job[j].start_s <= ends.back().first + 1e-9);
    }
    head_since = std::max(head_since, by_job[j].start_s);
  }
  CHECK(checked > 20);
}

TEST_CASE("Work is conserved: no job waits while the cluster could hold it, without reservations") {
  // Jobs of one GPU fit wherever one is idle.
  job_list jobs = busy();
  for (batch_job& j : jobs.jobs) j.gpus = 1;
  const queue_schedule out = schedule_jobs(jobs, prompt_setting({1, 4, 4}));
  CHECK(out.time.idle_wanted == 0);
  CHECK(out.time.idle > 0);
}

TEST_CASE("A job stops at its limit, and one that fits no empty cluster is counted and never starts") {
  const job_list jobs{{job(0, 100, 60, 4), job(0, 10, 10, 8)}, {"u"}, {"q"}, {}};
  const queue_schedule out = schedule_jobs(jobs, prompt_setting({1, 1, 4}));
  REQUIRE(out.attempts.size() == 1);
  CHECK(out.attempts[0].how == attempt_end::time_limit);
  CHECK(out.attempts[0].end_s == 60);
  CHECK(out.never == 1);
}

TEST_CASE("A higher tier evicts preemptible jobs, which keep what they have saved") {
  const job_list jobs{{job(0, 1'000, 0, 4, 0), job(450, 100, 0, 4, 1)}, {"u"}, {"low", "high"}, {}};
  queue_setting s = prompt_setting({1, 1, 4});
  s.policy.queues = {{.name = "low", .preemptible = true}, {.name = "high", .tier = 1}};
  CHECK(start_of(schedule_jobs(jobs, s), 1) == 1'000);
  s.policy.preempt = true;
  s.policy.checkpoint_interval = seconds::from_base(100);
  queue_schedule out = schedule_jobs(jobs, s);
  CHECK(start_of(out, 1) == 450);
  CHECK(out.preemptions == 1);
  CHECK(out.time.redone == 4 * 50);
  CHECK(out.elapsed_s == 450 + 100 + 600);
  s.policy.preempt_after = seconds::from_base(600);
  CHECK(start_of(schedule_jobs(jobs, s), 1) == 1'000);
}

TEST_CASE("A failed node ends its jobs, which wait again or have failed; more failures never finish sooner") {
  const job_list jobs = busy();
  queue_setting s = prompt_setting({4, 18, 4});
  double before = schedule_jobs(jobs, s).time.redone;
  CHECK(before == 0);
  for (const double days : {30.0, 5.0}) {
    s.failures.node_mtbf = seconds::from_base(days * 86400);
    s.failures.node_repair = seconds::from_base(3600);
    const queue_schedule out = schedule_jobs(jobs, s);
    CHECK(out.failures > 0);
    CHECK(out.requeues > 0);
    CHECK(out.time.redone > before);
    before = out.time.redone;
  }
  s.policy.checkpoint_interval = seconds::from_base(600);
  CHECK(schedule_jobs(jobs, s).time.redone < before);
  s.policy.requeue = false;
  CHECK(schedule_jobs(jobs, s).requeues == 0);
}

TEST_CASE("The rate of failures is that of the nodes") {
  // 72 nodes of 100 d for 1,000 d: 720 failures, and a sigma of 27.
  queue_setting s = prompt_setting({4, 18, 4});
  s.duration = seconds::from_base(1'000 * 86400.0);
  s.failures.node_mtbf = seconds::from_base(100 * 86400.0);
  s.failures.node_repair = seconds::from_base(1);
  const queue_schedule out = schedule_jobs({}, s);
  CHECK(std::abs(static_cast<double>(out.failures) - 720) < 3 * 27);
  CHECK(out.time.down == Approx(4.0 * static_cast<double>(out.failures)));
}

TEST_CASE("No job is started that may run into maintenance") {
  const job_list jobs{{job(0, 10, 100, 4), job(0, 10, 20, 4)}, {"u"}, {"q"}, {}};
  queue_setting s = prompt_setting({1, 1, 4});
  s.maintenance = {{seconds::from_base(50), seconds::from_base(30), 0, 1}};
  const queue_schedule out = schedule_jobs(jobs, s);
  CHECK(start_of(out, 0) == 80);  // its limit would end in the window
  CHECK(start_of(out, 1) == 0);
}

TEST_CASE("Fair share puts those first who used less") {
  // user 0 has run for a day; then both users' jobs wait for the one node.
  job_list jobs{{job(0, 86'400, 0, 4), job(100, 100, 0, 4), job(200, 100, 0, 4)}, {"a", "b"}, {"q"}, {}};
  jobs.jobs[2].user = 1;
  queue_setting s = prompt_setting({1, 1, 4});
  CHECK(start_of(schedule_jobs(jobs, s), 1) < start_of(schedule_jobs(jobs, s), 2));
  s.policy.priority.fair_share = 1'000;
  CHECK(start_of(schedule_jobs(jobs, s), 1) > start_of(schedule_jobs(jobs, s), 2));
}

TEST_CASE("A queue's quota holds back its jobs and nobody else's") {
  const job_list jobs{
      {job(0, 100, 0, 2, 0), job(1, 100, 0, 2, 0), job(2, 100, 0, 2, 1)}, {"u"}, {"small", "rest"}, {}};
  queue_setting s = prompt_setting({1, 1, 4});
  s.policy.queues = {{.name = "small", .max_gpus = 2}};
  const queue_schedule out = schedule_jobs(jobs, s);
  CHECK(start_of(out, 1) == 100);
  CHECK(start_of(out, 2) == 2);
}

TEST_CASE("A size-dependent segment costs little of the GPUs in use") {
  // Published advice: segments of 16 nodes from 128 GPUs, 4 from 32, else 1.
  const job_list jobs = busy();
  queue_setting s = prompt_setting({4, 18, 4});
  s.placement.kind = placement_kind::pack;
  const double blind = summarise(jobs, s, schedule_jobs(jobs, s)).utilisation;
  s.placement = {placement_kind::block, false, {{0, 1}, {32, 4}, {128, 16}}};
  CHECK(summarise(jobs, s, schedule_jobs(jobs, s)).utilisation > blind - 0.02);
}

TEST_CASE("The summary counts what an example shows") {
  const job_list jobs{{job(0, 100, 0, 8), job(0, 50, 0, 8), job(20, 30, 0, 4)}, {"u"}, {"q"}, {}};
  const queue_setting s = prompt_setting({2, 2, 4});
  const queue_summary q = summarise(jobs, s, schedule_jobs(jobs, s));
  CHECK(q.started == 3);
  CHECK(q.wait_s->p50 == 0);
  CHECK(q.wait_s->mean == Approx(30 / 3.0));  // the third starts at 50
  CHECK(q.slowdown->p99 == 2);                // 60 s for 30 s of work
  CHECK(q.utilisation == Approx((800 + 400 + 120) / (16 * 100.0)));
  CHECK(q.racks_per_job == 1);
  CHECK(q.makespan_s == 100);
  // Idle: a node of a busy rack from 50 to 80, then a whole rack.
  CHECK(q.fragmentation == Approx(30 * 4 / (30 * 4 + 20 * 8.0)));
}
