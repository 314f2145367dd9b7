// Reading the collective workload of a scenario.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/plan/collective_workload.hpp"

namespace nvlsim {

/// Whether the unread `workload` is a collective, and whether its parameters are ideal. Decides which other inputs
/// are needed.
bool is_collective(const value* workload);
bool has_ideal_parameters(const value* workload);

/// Reads `"workload"` of kind "collective"; The caller sets `place`.
collective_workload read_collective_workload(config::reader& r);
/// `"workload"` that reads as this one, without placement. Protocol and skew are members that only programs set.
value write_collective_workload(const collective_workload& w);

}  // namespace nvlsim
