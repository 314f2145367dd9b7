// Jobs that share a cluster for days to months.
#pragma once

#include <string>

#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/operation/cluster_run.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Whether the operation is one training job that has the cluster from the start.
bool is_lone(const operation_case& c);

/// The cluster with its jobs, whose steps are priced. Reasons why it cannot run, and notes, go into `about`.
cluster_setup shared_cluster_of(const scenario& s, const operation_case& c, std::uint64_t seed, result& about);

/// "serving", "repair: gpu": what a job or service did, and which component caused it.
std::string phase_name(const cluster_member& m, const operation_span& x);

/// Plays a cluster that is not alone for each seed, and measures.
void run_shared_cluster(run_record& out, const scenario& s, const operation_case& c, operation_metrics& m);

}  // namespace nvlsim
