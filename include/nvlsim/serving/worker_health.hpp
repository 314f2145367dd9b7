// Where workers are, and the health of their hardware. [docs/models-and-assumptions.md#degraded]
#pragma once

#include <cstdint>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Consecutive GPUs, numbered from the server's first.
struct gpu_span {
  std::int64_t first = 0, count = 0;
  std::int64_t last() const { return first + count - 1; }
};

/// Workers that decode, or that only prefill.
std::int64_t workers_of(const inference_workload& w, bool prefills);
/// All GPUs of the replica of a worker. Replicas fill racks in order without crossing them; larger replicas take
/// consecutive racks. Decode workers come first, prefill workers follow on the next GPUs. On racks of `rack` GPUs.
gpu_span replica_of(std::int64_t worker, bool prefills, std::int64_t rack, const inference_workload& w);
/// The GPUs that a worker stands for. The workers of a pipeline take turns on its stages: each stands for one,
/// whose GPUs carry as much as they would of all.
gpu_span worker_place(std::int64_t worker, bool prefills, std::int64_t rack, const inference_workload& w);

/// Health of the GPUs of a worker, which its slowest determines. Workers of a pipeline share a replica. Where the
/// GPUs are: `replica_of`.
hardware_health health_of(std::int64_t worker, bool prefills, const platform& p, const inference_workload& w);

/// The platform as a worker of this health sees it, but for the speed of its kernels.
platform seen_with(const hardware_health& h, const platform& p);

}  // namespace nvlsim
