// Running a plan on the engine.
#pragma once

#include "nvlsim/network/fidelity.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

struct simulation_options {
  fidelity network = fidelity::closed;
};

/// Runs the plan with one actor per stream that has operations. Dates count from the start of this call. In
/// `closed` every operation takes its duration; in `flow` and `exact` those that demand the network share the
/// ports of their classes, and what tells the two apart is the plan: in one for `exact` every operation is a
/// single message. [docs/network-fidelities.md#flow] Throws input_error for more than 20,000 actors (`flow` and
/// `exact` need one more for each port that receives), internal_error for a malformed plan or one that deadlocks.
/// One call at a time per process; a second one works, but memory of the first is not all returned and SimGrid's
/// clock goes on, so prefer a process for each.
timeline simulate(const plan& p, const platform& hardware, const simulation_options& options = {});

}  // namespace nvlsim
