// The two fabrics of a platform as ports on ideal crossbars: NVLink inside a rack, NICs between racks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/platform/platform.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim::network {

/// The port of a GPU on a fabric. Each direction has its own capacity.
struct port {
  std::int64_t gpu = 0;
  bandwidth up, down;
};

/// A capacity that several ports share in each direction: the up-links of a leaf, a degraded spine, a rail. Only
/// traffic beyond it needs it; traffic between its ports does not. Traffic beyond a pod needs those of its leaf,
/// too.
struct aggregate {
  std::string name;
  bandwidth up, down;
  /// Indices into star::ports. One that is listed k times stands for k ports that do the same.
  std::vector<std::size_t> ports;
  uplink_level level = uplink_level::leaves;
};

/// One fabric. Traffic between two ports is limited only by the capacities of the ports and, if it goes beyond
/// them, of their aggregates.
/// The one-way latency is the same between all ports.
struct star {
  std::string name;         ///< "nvl", "ib"
  std::string host_prefix;  ///< host of GPU 7: prefix + "7"
  seconds latency;
  std::vector<port> ports;
  std::vector<aggregate> aggregates;
};

/// `nvlink` does not distinguish NVLink domains: callers must not send traffic between domains on it.
struct topology {
  star nvlink, fabric;
};

/// The ports of `gpus`. A platform has no NVLink latency, because the alphas of collective profiles include it;
/// the default is therefore zero.
topology describe(const platform& p, std::span<const std::int64_t> gpus, seconds nvlink_latency = {});

}  // namespace nvlsim::network
