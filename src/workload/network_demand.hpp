// From what a collective costs to what it demands of the ports.
#pragma once

#include "nvlsim/plan.hpp"
#include "nvlsim/platform.hpp"

namespace nvlsim {

/// What an operation of that duration demands. Its bytes leave room for `latency` where the ports are not full: where
/// they would be, some of the latency was hidden behind bytes; where they cannot carry all in the duration, the model
/// that gave it assumes less traffic, and they carry what they can.
/// [docs/models-and-assumptions.md#network-fidelities]
network_demand demand_on(const platform& p, const network_traffic& t, seconds duration, seconds latency);

}  // namespace nvlsim
