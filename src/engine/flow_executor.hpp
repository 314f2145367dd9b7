// Fidelities `flow` and `exact`: bytes of operations share the ports of their GPUs.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/executor.hpp"
#include "engine/simgrid_zone.hpp"

namespace nvlsim::engine {

inline constexpr std::size_t fabrics = 2;  ///< NVLink, NIC

/// Which ports receive something in a plan, by fabric and class.
struct receiving_ports {
  std::array<std::vector<bool>, fabrics> own;      ///< of the classes themselves
  std::array<std::vector<bool>, fabrics> outside;  ///< of what is outside the plan, one a class: it bounds nothing
  bool any_outside = false;                        ///< whether something comes from there or goes there

  std::size_t count() const;
};
receiving_ports receiving_ports_of(const plan& p);

/// Exchanges inside an operation are simulated only while somebody else is on the same ports, which gives the same
/// dates. An exchange of an operation waits its latency and then for its flows, each capped at the rate at which
/// it takes the rest of the closed time, so that alone it ends then. Hosts of `z` are by class, and those of the
/// outside come after them if there are any; routes have no latency. Adds an actor for each receiving port.
/// [docs/network-fidelities.md#flow]
std::unique_ptr<executor> make_flow_executor(const session& s, const network::zones& z,
                                             const receiving_ports& used);

}  // namespace nvlsim::engine
