// Plays the queue of a cluster.
#pragma once

#include "nvlsim/analysis/queue_metrics.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/scheduling/cluster_queue.hpp"

namespace nvlsim {

/// Plays the queue of an operation for each of its seeds.
queue_study run_queue(const scenario& s, const operation_workload& w);

}  // namespace nvlsim
