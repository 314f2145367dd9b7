// Reading what befalls jobs that train: failures, saves, recovery, maintenance.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/operation/operation.hpp"

namespace nvlsim {

/// Reads the members of `/workload` that a profile fills, and `maintenance`.
training_operation read_training_operation(config::reader& workload);
value write_training_operation(const training_operation& t);

}  // namespace nvlsim
