// The collective workload of a scenario.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/plan/collective_workload.hpp"

namespace nvlsim {

/// Whether `workload`, as it stands in the file, is a collective, and then whether its parameters are ideal. For
/// telling which other inputs are needed before it is read.
bool is_collective(const value* workload);
bool has_ideal_parameters(const value* workload);

/// Reads `"workload"` of kind "collective"; `place` is set by the caller.
collective_workload read_collective_workload(config::reader& r);

}  // namespace nvlsim
