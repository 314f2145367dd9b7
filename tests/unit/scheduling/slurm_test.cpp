#include <catch2/catch.hpp>
#include <cmath>
#include <set>
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

}  // namespace

TEST_CASE("Slurm's own schedule comes out: starts, racks and nodes") {
  queue_setting s;
  s.cluster = {4, 6, 4};
  s.policy.backfill_interval = 1.0_s;
  s.placement.whole_nodes = true;
  job_list jobs{{}, {"user"}, {"queue"}, {}};
  for (const test::slurm_job& j : test::slurm_22_05) {
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
  double queued = 0, slurm_queued = 0;
  int in_time = 0, racks = 0, same_nodes = 0;
  for (const job_attempt& a : out.attempts) {
    const test::slurm_job& slurm = test::slurm_22_05[static_cast<std::size_t>(a.job)];
    queued += a.start_s - slurm.submit_s;
    slurm_queued += slurm.start_s - slurm.submit_s;
    const std::string on = text_of(a.nodes, 6);
    in_time += std::abs(a.start_s - slurm.start_s) <= 3;
    racks += racks_of(on) == racks_of(slurm.on);
    same_nodes += on == slurm.on;
  }
  CAPTURE(queued / slurm_queued, in_time, racks, same_nodes);
  CHECK(queued == Approx(slurm_queued).epsilon(0.05));
  CHECK(in_time == 36);
  CHECK(racks >= 34);
  CHECK(same_nodes >= 29);
  CHECK(out.elapsed_s == Approx(344.8).margin(2));
}
