// The GPUs of jobs on a shared platform.
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/platform/platform.hpp"
#include "nvlsim/scenario/jobs.hpp"

namespace nvlsim {

/// GPUs of a job's workload.
std::int64_t ranks_of(const scenario& job);
/// Racks that a job's placement fills in order, unless it lists GPUs, and the GPUs that it uses of a rack.
std::int64_t racks_needed(const scenario& job);
std::int64_t gpus_used_per_rack(const scenario& job);
/// The GPU number of every rank on the shared platform, of a server by worker. Linear in the ranks.
std::vector<std::int64_t> gpus_of(const cluster_job& job, const platform& p);

}  // namespace nvlsim
