// What requests waited for, from arrival to token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/time_slices.hpp"
#include "nvlsim/inference.hpp"

namespace nvlsim {

/// "ttft_s", "tpot_s", "itl_s", "e2e_s" and "queue_s".
bool is_latency(std::string_view metric);

struct latency_parts {
  std::vector<time_slice> slices;  ///< add up to the statistic
  std::string note;                ///< whose latency it is
};

/// Of the mean over requests, or of the request that has the value of a percentile.
latency_parts parts_of_latency(const inference_run& run, const plan& work, const timeline& times,
                               std::string_view metric, std::string_view statistic, double wanted);

}  // namespace nvlsim
