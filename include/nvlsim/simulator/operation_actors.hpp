// Plays a cluster over days to months on the simulation engine, SimGrid.
#pragma once

#include <cstdint>

#include "nvlsim/operation/operation_run.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Plays a run with actors on the racks of `hardware`: one for each kind of component that fails, one for the job
/// and its phases, and one for each repair under way. The outcome is that of `run_by_queue` to 1e-9. Throws as
/// `simulate`; the same rules for repeated calls hold.
operation_outcome run_operation_by_actors(const operation_setup& setup, std::uint64_t seed,
                                          const platform& hardware);

}  // namespace nvlsim
