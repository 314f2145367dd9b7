// Metrics of a schedule: waits, slowdown and use of GPU time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/scheduling/schedule.hpp"

namespace nvlsim {

/// Mean and order statistics, by nearest rank.
struct queue_spread {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, most = 0;
};

/// Jobs and GPU time of one user or queue.
struct queue_share {
  std::string name;
  std::int64_t jobs = 0;
  double gpu_time = 0;  ///< share of the GPU time of all jobs
  double mean_wait_s = 0;
};

/// Metrics over all jobs.
struct queue_summary {
  std::int64_t jobs = 0, started = 0, finished = 0, never = 0;
  std::optional<queue_spread> wait_s;    ///< from submission to the first start, over jobs that started
  std::optional<queue_spread> slowdown;  ///< over jobs that finished; see docs/scheduling.md#metrics
  double utilisation = 0;                ///< GPU time held by jobs / GPU time of the cluster
  double fragmentation = 0;              ///< idle GPU time outside wholly idle racks / idle GPU time
  double held_back = 0;      ///< share of GPU time idle while enough GPUs for the first waiting job were idle
  double racks_per_job = 0;  ///< mean over starts
  double spare_racks_per_job = 0;          ///< racks beyond the fewest possible, mean over starts
  double makespan_s = 0;                   ///< from the first submission to the last end
  std::vector<queue_share> users, queues;  ///< by GPU time, largest first
};

/// Computes the metrics of a schedule.
queue_summary summarise(const job_list& jobs, const queue_setting& setting, const queue_schedule& schedule);

}  // namespace nvlsim
