// Fidelities `flow` and `exact`, in which the traffic of operations shares the ports of GPUs.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "simulator/executor.hpp"
#include "simulator/simgrid_zone.hpp"

namespace nvlsim::simulator {

inline constexpr std::size_t ways = 4;  ///< NVLink, NIC under the leaf, NIC beyond the leaf, NIC beyond the pod

/// The levels whose up-links are simulated. Traffic beyond a level that is not goes the way of that under it.
struct simulated_levels {
  bool leaves = false, pods = false;
};
simulated_levels levels_of(const std::vector<shared_uplink>& uplinks);
/// Whether traffic takes the way.
bool is_used(std::size_t way, simulated_levels levels);

/// Ports that receive traffic in a plan, by way and class.
struct receiving_ports {
  std::array<std::vector<bool>, ways> own;      ///< of the classes themselves
  std::array<std::vector<bool>, ways> outside;  ///< ports outside the plan, one per class, which limit nothing
  bool any_outside = false;                     ///< whether traffic comes from outside or goes there

  std::size_t count() const;
};
/// Of a number of classes that receive nothing yet.
receiving_ports no_receivers(std::size_t classes);
receiving_ports receiving_ports_of(const plan& p, simulated_levels levels);

/// Exchanges inside an operation are simulated only while another operation uses the same ports; the times are the
/// same. An exchange waits for its latency, then for its flows. The rate of each flow is limited so that, without
/// other traffic, it ends with the `closed` time. `z` has one host per class, followed by the hosts outside the
/// plan if there are any. Traffic beyond a leaf uses `z.beyond`, and beyond a pod `z.beyond_pod`, where a port has
/// one. Routes have no latency. Adds an actor per receiving port and way. [docs/network-fidelities.md#flow]
std::unique_ptr<executor> make_flow_executor(const session& s, const network::zones& z,
                                             const receiving_ports& used,
                                             const std::vector<shared_uplink>& uplinks);

}  // namespace nvlsim::simulator
