// Runs jobs that share a platform.
#pragma once

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Plans the jobs, simulates them together and each alone on the same fabric, and compares.
/// [docs/network-fidelities.md#jobs] Returns the platform as they found it: with no more traffic on its up-links
/// than theirs.
platform run_shared(run_record& out, const scenario& s, const shared_workload& w);

}  // namespace nvlsim
