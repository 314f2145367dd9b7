// Workloads as scenarios say them.
#pragma once

#include "nvlsim/config/value.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// `"workload"` that reads as this one, every member of it; without degraded hardware and the seed.
value write_inference_workload(const inference_workload& w);

}  // namespace nvlsim
