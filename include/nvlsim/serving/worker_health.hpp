// Health of the hardware that serves. [docs/models-and-assumptions.md#degraded]
#pragma once

#include <cstdint>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Health of the GPUs of a worker, which its slowest determines. Replicas fill racks in order without crossing
/// them; larger replicas take consecutive racks. Workers of a pipeline share a replica. Decode workers come first,
/// prefill workers follow on the next GPUs.
hardware_health health_of(std::int64_t worker, bool prefills, const platform& p, const inference_workload& w);

/// The platform as a worker of this health sees it, but for the speed of its kernels.
platform seen_with(const hardware_health& h, const platform& p);

}  // namespace nvlsim
