// Runs a plan on the simulation engine, SimGrid.
#pragma once

#include "nvlsim/network/fidelity.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

struct simulation_options {
  fidelity network = fidelity::closed;
};

/// Runs the plan with one actor per stream that has operations. Times are relative to the start of the call. In
/// `closed`, every operation takes its duration. In `flow` and `exact`, operations with network demands share the
/// ports of their classes; the two differ only in the plan, which for `exact` has one operation per message.
/// [docs/network-fidelities.md#flow] Throws input_error for more actors than memory has room for
/// (`flow` and `exact` need one more per receiving port), and internal_error for a malformed plan or a deadlock.
/// Not thread-safe: make one call at a time per process. Further calls work, but some memory of earlier ones is
/// not released and SimGrid's clock continues, so prefer one process per call.
timeline simulate(const plan& p, const platform& hardware, const simulation_options& options = {});

/// Loads the simulation engine where it is a library of its own, as the functions of this module do when called.
/// A process whose children simulate loads it once for all of them. Throws io_error if the library is missing.
void load_simulator();

}  // namespace nvlsim
