// Plays the queue of a cluster.
#pragma once

#include <optional>

#include "nvlsim/analysis/queue_metrics.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/scheduling/cluster_queue.hpp"

namespace nvlsim {

/// The jobs of a queue; generated ones are sampled.
job_list queued_jobs(const cluster_queue& q, std::uint64_t seed);
/// A schedule in numbers.
queue_outcome queue_numbers(const job_list& jobs, const queue_setting& setting, const queue_schedule& played);
/// Plays the queue of an operation for each of its seeds. `picture` gets the first.
queue_study run_queue(const scenario& s, const operation_workload& w, std::optional<cluster_picture>& picture);

}  // namespace nvlsim
