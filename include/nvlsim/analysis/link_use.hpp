// Use of GPU ports during a run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Use of one port direction on a GPU of one class. Shares are fractions of the port's capacity.
struct link_use {
  std::int32_t rank_class = 0;
  std::string name;  ///< "nvlink out", "nic in"
  bytes carried;
  double mean = 0, peak = 0;  ///< mean and highest share over the run
  std::string busiest;        ///< the operation that sent the most bytes
  bytes of_busiest;
  std::vector<std::pair<double, double>> points;  ///< time in seconds, share from then on
};

/// Ports that carried traffic, busiest first. Bytes of an operation are spread evenly from the end of its latency
/// to the end of the operation. [docs/network-fidelities.md#link-use]
std::vector<link_use> links_used(const plan& p, const timeline& times, const platform& hardware);

}  // namespace nvlsim
