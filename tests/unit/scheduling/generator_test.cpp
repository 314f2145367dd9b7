#include "nvlsim/scheduling/generator.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace nvlsim;

namespace {

struct statistics {
  double mean_run = 0, median_run = 0, mean_gpus = 0, median_gpus = 0, max_gpus = 0, per_day = 0, gpu_seconds = 0;
  std::array<double, 3> outcomes{}, outcome_time{};
  double up_to_8 = 0, one = 0, time_up_to_8 = 0, time_256 = 0, four_k = 0, time_4k = 0;
};

statistics of(const job_list& list) {
  statistics s;
  std::vector<double> runs, gpus;
  for (const batch_job& j : list.jobs) {
    const double run = j.run.base(), time = run * j.gpus;
    const auto o = static_cast<std::size_t>(j.outcome);
    runs.push_back(run);
    gpus.push_back(j.gpus);
    s.mean_run += run;
    s.mean_gpus += j.gpus;
    s.gpu_seconds += time;
    ++s.outcomes[o];
    s.outcome_time[o] += time;
    s.one += j.gpus == 1;
    s.up_to_8 += j.gpus <= 8;
    s.four_k += j.gpus >= 4096;
    s.time_up_to_8 += j.gpus <= 8 ? time : 0;
    s.time_256 += j.gpus >= 256 ? time : 0;
    s.time_4k += j.gpus >= 4096 ? time : 0;
  }
  const auto n = static_cast<double>(list.jobs.size());
  for (double* x :
       {&s.mean_run, &s.mean_gpus, &s.one, &s.up_to_8, &s.four_k, &s.outcomes[0], &s.outcomes[1], &s.outcomes[2]})
    *x /= n;
  for (double* x :
       {&s.time_up_to_8, &s.time_256, &s.time_4k, &s.outcome_time[0], &s.outcome_time[1], &s.outcome_time[2]})
    *x /= s.gpu_seconds;
  std::sort(runs.begin(), runs.end());
  std::sort(gpus.begin(), gpus.end());
  s.median_run = runs[runs.size() / 2];
  s.median_gpus = gpus[gpus.size() / 2];
  s.max_gpus = gpus.back();
  s.per_day = n / (list.jobs.back().submit.base() / 86400);
  return s;
}

/// AcmeTrace's data/cluster_summary.csv.
struct published {
  const char* name;
  double mean_run, median_run, mean_gpus, most;
  std::array<double, 3> outcomes, outcome_time;
};
const published clusters[] = {
    {"philly", 18'006, 874, 1.93, 128, {0.604, 0.305, 0.090}, {0.321, 0.386, 0.294}},
    {"helios", 6'652, 206, 3.72, 2048, {0.624, 0.155, 0.221}, {0.513, 0.093, 0.394}},
    {"seren", 1'414, 122, 5.68, 1024, {0.497, 0.429, 0.075}, {0.212, 0.124, 0.664}},
    {"kalos", 1'260, 124, 26.8, 1024, {0.541, 0.397, 0.062}, {0.313, 0.080, 0.607}},
};

}  // namespace

TEST_CASE("Generated jobs have the published statistics of Philly, Helios, Seren and Kalos") {
  for (const published& p : clusters) {
    job_generator g = *find_job_profile(p.name);
    g.jobs = 20'000;
    REQUIRE(why_no_jobs(g).empty());
    const statistics s = of(generate_jobs(g, 7));
    CAPTURE(p.name);
    CHECK(s.mean_run == Approx(p.mean_run).epsilon(0.01));
    CHECK(s.median_run == Approx(p.median_run).epsilon(0.02));
    CHECK(s.mean_gpus == Approx(p.mean_gpus).epsilon(0.01));
    CHECK(s.median_gpus == 1);
    CHECK(s.max_gpus <= p.most);
    CHECK(s.per_day == Approx(g.jobs_per_day).epsilon(0.05));
    for (std::size_t o = 0; o < 3; ++o) {
      CHECK(s.outcomes[o] == Approx(p.outcomes[o]).margin(0.002));
      CHECK(s.outcome_time[o] == Approx(p.outcome_time[o]).margin(0.03));
    }
  }
}

TEST_CASE("Generated jobs meet the six published numbers of Meta's clusters") {
  const statistics one = of(generate_jobs(*find_job_profile("rsc-1"), 1));
  CHECK(one.per_day == Approx(7'200).epsilon(0.02));
  CHECK(one.one > 0.4);
  CHECK(one.up_to_8 > 0.9);
  CHECK(one.time_up_to_8 < 0.1);
  CHECK(one.time_256 == Approx(0.66).margin(0.005));
  CHECK(one.four_k < 0.01);
  CHECK(one.time_4k == Approx(0.12).margin(0.005));
  // GPU time a day over that of 16,384 GPUs: the share that is allocated.
  CHECK(one.gpu_seconds / 30 / (16'384 * 86'400.0) == Approx(0.83).epsilon(0.01));
  const statistics two = of(generate_jobs(*find_job_profile("rsc-2"), 1));
  CHECK(two.time_256 == Approx(0.52).margin(0.005));
  CHECK(two.gpu_seconds / 30 / (8'192 * 86'400.0) == Approx(0.85).epsilon(0.01));
}

TEST_CASE("A seed draws other orders and arrivals of the same jobs") {
  job_generator g = *find_job_profile("philly");
  g.jobs = 2'000;
  const job_list a = generate_jobs(g, 1), b = generate_jobs(g, 2);
  CHECK(a == generate_jobs(g, 1));
  CHECK_FALSE(a == b);
  CHECK(of(a).gpu_seconds == Approx(of(b).gpu_seconds));
  CHECK(std::is_sorted(a.jobs.begin(), a.jobs.end(),
                       [](const auto& x, const auto& y) { return x.submit < y.submit; }));
}

TEST_CASE("Statistics that no jobs have are told") {
  job_generator g = *find_job_profile("philly");
  g.median_run = g.mean_run * 2;
  CHECK(why_no_jobs(g).find("no log-normal run times have a mean of") == 0);
  g = *find_job_profile("philly");
  g.max_run = g.mean_run;
  CHECK(why_no_jobs(g).find("the longest run is") != std::string::npos);
}
