// A topology as SimGrid hosts and links.
#pragma once

#include <vector>

#include "nvlsim/network/topology.hpp"

namespace simgrid::s4u {
class Engine;
class Host;
}  // namespace simgrid::s4u

namespace nvlsim::network {

/// A host on an aggregate alone, for the traffic of those ports that another port stands for under it, and how
/// many those are.
struct other_ports {
  simgrid::s4u::Host* host = nullptr;
  int count = 0;
  uplink_level level = uplink_level::leaves;
};

/// Hosts, in the order of the ports of the topology.
struct zones {
  std::vector<simgrid::s4u::Host*> nvlink, fabric;
  /// The same ports of the fabric, for traffic that crosses their aggregates up to a level; null for ports without
  /// any of that level. Empty if there are no aggregates.
  std::vector<simgrid::s4u::Host*> beyond, beyond_pod;
  /// Of ports that stand for several under aggregates: the traffic of the others, by aggregate.
  std::vector<std::vector<other_ports>> others;
};

/// Builds both fabrics as flat stars under the root zone, and seals the zone. Call once a session, before it
/// runs. [docs/models-and-assumptions.md#engine]
zones build(simgrid::s4u::Engine& simgrid, const topology& t);

}  // namespace nvlsim::network
