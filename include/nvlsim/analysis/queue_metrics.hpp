// What a cluster's queue did.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scheduling/queue_summary.hpp"

namespace nvlsim {

/// One seed's schedule in numbers.
struct queue_outcome {
  queue_summary summary;
  gpu_time time;           ///< GPU-seconds
  double gpu_seconds = 0;  ///< of the cluster
  std::int64_t preemptions = 0, failures = 0, requeues = 0;
};

/// A queue that was played for several seeds.
struct queue_study {
  std::vector<queue_outcome> runs;     ///< by seed; at least one
  std::vector<std::string> job_notes;  ///< on the jobs
};

/// The mean of a number over the seeds.
double mean_over_seeds(const queue_study& s, double (*of)(const queue_outcome&));

/// Rows of an operation with a queue.
std::span<const measured_metric<operation_metrics>> queue_rows();

/// Adds where GPU time went, users, queues, notes and bands.
void add_queue_sections(result& r, const queue_study& s);

}  // namespace nvlsim
