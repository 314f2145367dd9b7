// Loads that replicas share nothing of: each serves its own requests, and equal ones can be folded.
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/platform/platform.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Workers with equally many requests and clients, on equal hardware.
struct load_share {
  std::int64_t first = 0, workers = 1;     ///< number of the first; how many
  std::int64_t requests = 0, clients = 0;  ///< of each; no clients: all requests come at once
  hardware_health health;
};

/// Shares of a dealt load, without workers that get no request. Unless `fold`, each has one worker.
std::vector<load_share> shares_of(const platform& p, const inference_workload& w, bool fold);

}  // namespace nvlsim
