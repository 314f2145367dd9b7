#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <span>
#include <string>

#include "nvlsim/scheduling/schedule.hpp"
#include "unit/scheduling/slurm_schedule.hpp"

using namespace nvlsim;

namespace {

std::string text_of(const std::vector<int>& nodes, int per_rack) {
  std::string out;
  for (const int n : nodes)
    out += (out.empty() ? "" : " ") + std::to_string(n / per_rack) + std::to_string(n % per_rack);
  return out;
}

int racks_of(const std::string& on) {
  std::set<char> racks;
  for (std::size_t i = 0; i < on.size(); i += 3) racks.insert(on[i]);
  return static_cast<int>(racks.size());
}

/// How a schedule of ours compares with Slurm's.
struct agreement {
  double queued = 0;  ///< mean queue time over Slurm's
  double finished_s = 0;
  int in_time = 0;  ///< starts within 3 s
  int racks = 0;    ///< jobs on as many racks
  int nodes = 0;    ///< jobs on the same nodes
};

agreement replayed(std::span<const test::slurm_job> submitted) {
  queue_setting s;
  s.cluster = {4, 6, 4};
  s.policy.backfill_interval = 1.0_s;
  s.placement.whole_nodes = true;
  job_list jobs{{}, {"user"}, {"queue"}, {}};
  for (const test::slurm_job& j : submitted) {
    batch_job b;
    b.submit = seconds::from_base(j.submit_s);
    b.run = seconds::from_base(j.run_s);
    b.limit = seconds::from_base(j.limit_s);
    b.nodes = j.nodes;
    b.gpus = j.nodes * 4;
    jobs.jobs.push_back(b);
  }
  const queue_schedule out = schedule_jobs(jobs, s);
  REQUIRE(out.attempts.size() == jobs.jobs.size());
  agreement a;
  double queued = 0, slurm_queued = 0;
  for (const job_attempt& x : out.attempts) {
    const test::slurm_job& slurm = submitted[static_cast<std::size_t>(x.job)];
    queued += x.start_s - slurm.submit_s;
    slurm_queued += slurm.start_s - slurm.submit_s;
    const std::string on = text_of(x.nodes, 6);
    a.in_time += std::abs(x.start_s - slurm.start_s) <= 3;
    a.racks += racks_of(on) == racks_of(slurm.on);
    a.nodes += on == slurm.on;
  }
  a.queued = queued / slurm_queued;
  a.finished_s = out.elapsed_s;
  return a;
}

}  // namespace

TEST_CASE("Slurm's own schedule comes out: starts, racks and nodes") {
  const agreement a = replayed(test::slurm_22_05);
  CAPTURE(a.queued, a.in_time, a.racks, a.nodes);
  CHECK(a.queued == Approx(1).epsilon(0.05));
  CHECK(a.in_time == 36);
  CHECK(a.racks >= 34);
  CHECK(a.nodes >= 29);
  CHECK(a.finished_s == Approx(344.8).margin(2));
}

// Not as close: at 134 s three small jobs start here on nodes that no job ahead of them is promised. Slurm starts
// them 17 s later beside the next large one, and later starts follow from that.
TEST_CASE("A later schedule of Slurm's, for which no rule was made, comes out for three jobs of four") {
  const agreement a = replayed(test::slurm_22_05_later);
  CAPTURE(a.queued, a.in_time, a.racks, a.nodes, a.finished_s);
  CHECK(a.queued == Approx(0.79).margin(0.03));
  CHECK(a.in_time >= 36);
  CHECK(a.racks >= 37);
  CHECK(a.finished_s == Approx(331.6).epsilon(0.1));
}
