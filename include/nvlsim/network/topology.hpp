// The two fabrics of a platform as ports on ideal crossbars: NVLink inside a rack, NICs between racks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nvlsim/platform/platform.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim::network {

/// Where a GPU meets a fabric; each direction has its own capacity.
struct port {
  std::int64_t gpu = 0;
  bandwidth up, down;
};

/// A capacity that several ports share on their way in and out: the uplinks of a leaf, a broken spine, a rail.
struct aggregate {
  std::string name;
  bandwidth up, down;
  std::vector<std::size_t> ports;  ///< indices into star::ports
};

/// One fabric: any port reaches any other with nothing in between but their own capacities and their aggregates,
/// all with the same one-way latency.
struct star {
  std::string name;         ///< "nvl", "ib"
  std::string host_prefix;  ///< host of GPU 7: prefix + "7"
  seconds latency;
  std::vector<port> ports;
  std::vector<aggregate> aggregates;
};

/// NVLink domains are not told apart: no traffic may be sent between domains on `nvlink`.
struct topology {
  star nvlink, fabric;
};

/// The ports of `gpus`. A platform states no NVLink latency, since collective profiles carry it in their alphas:
/// it is zero unless given.
topology describe(const platform& p, std::span<const std::int64_t> gpus, seconds nvlink_latency = {});

}  // namespace nvlsim::network
