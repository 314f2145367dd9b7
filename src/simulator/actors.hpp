// The actors of a plan, one per stream that has operations.
#pragma once

#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "simulator/executor.hpp"
#include "simulator/session.hpp"

namespace nvlsim::simulator {

/// Runs a checked plan. `hosts` has one host per class. Rethrows the first exception of an actor, and throws
/// internal_error on a deadlock.
timeline run_actors(const plan& p, session& s, executor& how, const std::vector<compat::sg4::Host*>& hosts);

}  // namespace nvlsim::simulator
