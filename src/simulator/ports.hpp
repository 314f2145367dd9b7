// Ports of a simulation.
#pragma once

#include <cstddef>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"
#include "simulator/session.hpp"
#include "simulator/simgrid_zone.hpp"

namespace nvlsim::simulator {

/// The up-links of classes or workers that name none: all GPUs of a leaf are taken to send at once, so that each
/// has its share to itself. Empty where they limit nothing.
std::vector<shared_uplink> uplink_shares(const platform& hardware, std::size_t count);

/// Ports of GPUs: one GPU represents a class of ranks or a worker, so their index is used as its GPU number.
/// `shared`: operations include their own latency, so that routes have none.
network::zones build_ports(session& s, const platform& hardware, std::size_t ports, bool shared,
                           const std::vector<shared_uplink>& uplinks);

}  // namespace nvlsim::simulator
