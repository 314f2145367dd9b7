// What a run put on the ports of its GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// One direction of one port of a GPU of a class. Shares are of its capacity.
struct link_use {
  std::int32_t rank_class = 0;
  std::string name;  ///< "nvlink out", "nic in"
  bytes carried;
  double mean = 0, peak = 0;  ///< share of the capacity, over the whole run and at most
  std::string busiest;        ///< operation that carried most
  bytes of_busiest;
  std::vector<std::pair<double, double>> points;  ///< date in seconds, share from then on
};

/// Ports that carried something, those used most first. The bytes of an operation flow evenly from the end of its
/// latency to its own. [docs/network-fidelities.md#link-use]
std::vector<link_use> links_used(const plan& p, const timeline& times, const platform& hardware);

}  // namespace nvlsim
