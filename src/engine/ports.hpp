// Ports of a simulation, and how many actors it may have.
#pragma once

#include <cstddef>

#include "engine/session.hpp"
#include "engine/simgrid_zone.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim::engine {

/// Throws input_error if there are more actors than memory mappings for their stacks.
void refuse_too_many_actors(std::size_t needed);

/// Ports of GPUs: one GPU represents a class of ranks or a worker, so their index is used as its GPU number.
/// `shared`: operations include their own latency, so that routes have none.
network::zones build_ports(session& s, const platform& hardware, std::size_t ports, bool shared);

}  // namespace nvlsim::engine
