// Generates jobs with the statistics of a cluster.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/scheduling/jobs.hpp"

namespace nvlsim {

/// One job size: its share of all jobs and of all GPU time.
struct size_share {
  std::int32_t gpus = 1;
  double jobs = 0;
  double gpu_time = 0;  ///< 0 for every size: jobs of all sizes run equally long

  bool operator==(const size_share&) const = default;
};

/// Statistics of generated jobs. Run times are log-normal for each size and outcome, up to a maximum.
struct job_generator {
  std::string profile;  ///< source of the other members; "" if none
  std::int64_t jobs = 0;
  double jobs_per_day = 0;
  std::vector<size_share> sizes;
  seconds mean_run, median_run;  ///< over jobs
  seconds max_run;
  std::array<double, 3> outcomes{1, 0, 0};      ///< shares of jobs by job_outcome
  std::array<double, 3> outcome_time{1, 0, 0};  ///< shares of GPU time by job_outcome
  double daily_swing = 0;                       ///< arrival rate at noon over the mean, minus 1; 0 to 1
  std::int64_t users = 1;                       ///< jobs per user follow Zipf's law
  double limit_over_run = 0;                    ///< mean of requested time over run time; 0: no limits

  bool operator==(const job_generator&) const = default;
};

/// Published clusters: "philly", "helios", "seren", "kalos", "rsc-1", "rsc-2". docs/scheduling.md#profiles says
/// what is published and what is assumed.
const std::vector<std::string>& job_profiles();
/// The profile with that name; null if there is none.
const job_generator* find_job_profile(std::string_view name);

/// Why these statistics cannot be met, such as "a median run of ... is more than the mean"; empty if they can.
std::string why_no_jobs(const job_generator& g);

/// Generates the jobs. Counts, means, medians and shares are those of `g` for every seed; the seed decides order,
/// users, limits and arrival times. Requires an empty `why_no_jobs`.
job_list generate_jobs(const job_generator& g, std::uint64_t seed);

}  // namespace nvlsim
