// Use of GPU ports during a run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// How busy a link is: one direction of a port on the GPUs of a class, or up-links that classes share. Shares are
/// fractions of the capacity.
struct link_use {
  std::int32_t rank_class = 0;  ///< -1: shared up-links
  /// "nvlink out" or what the links of a domain are called, "nic in"; "uplink out", "pod uplink out": the GPU's
  /// share of the up-links of its leaf and pod, where they limit
  std::string name;
  bytes carried;
  double mean = 0, peak = 0;  ///< mean and highest share over the run
  std::string busiest;        ///< the operation that sent the most bytes
  bytes of_busiest;
  std::vector<std::pair<std::int32_t, bytes>> by_class;  ///< of shared up-links: what each class sent through them
  std::vector<std::pair<double, double>> points;         ///< time in seconds, share from then on
};

/// What the links of a domain are called in text: "nvlink", "infinity fabric", "pcie".
std::string domain_link(const platform& hardware);

/// Ports that carried traffic, busiest first. Bytes of an operation are spread evenly from the end of its latency
/// to the end of the operation. [docs/network-fidelities.md#link-use]
std::vector<link_use> links_used(const plan& p, const timeline& times, const platform& hardware);

}  // namespace nvlsim
