// A topology as SimGrid hosts and links.
#pragma once

#include <vector>

#include "nvlsim/network/topology.hpp"

namespace simgrid::s4u {
class Engine;
class Host;
}  // namespace simgrid::s4u

namespace nvlsim::network {

/// Hosts, in the order of the ports of the topology.
struct zones {
  std::vector<simgrid::s4u::Host*> nvlink, fabric;
  /// The same ports of the fabric, for traffic that crosses their aggregates; null for ports without any.
  std::vector<simgrid::s4u::Host*> beyond;
  /// Of ports that stand for several under an aggregate: a host on the aggregate alone, for the traffic of the
  /// others, and how many those are; null and 0 for other ports.
  std::vector<simgrid::s4u::Host*> others;
  std::vector<int> other_ports;
};

/// Builds both fabrics as flat stars under the root zone, and seals the zone. Call once per engine, before it
/// runs. [docs/models-and-assumptions.md#engine]
zones build(simgrid::s4u::Engine& engine, const topology& t);

}  // namespace nvlsim::network
