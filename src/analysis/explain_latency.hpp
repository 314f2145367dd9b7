// What requests waited for, from arrival to token.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/time_slices.hpp"
#include "nvlsim/analysis/result.hpp"

namespace nvlsim {

/// "ttft_s", "tpot_s", "itl_s", "e2e_s" and "queue_s".
bool is_latency(std::string_view metric);

struct latency_parts {
  /// "queue", "prefill", "transfer", "decode queue", "decode", "server", in order: what the lane that had the
  /// request did meanwhile. All slices add up to the statistic.
  std::vector<std::pair<std::string, std::vector<time_slice>>> stages;
  std::string note;  ///< whose latency it is

  std::vector<time_slice> slices() const;
};

/// Of the mean over requests that count in the result, or of the request that has the value of a percentile.
/// Requires a served run.
latency_parts parts_of_latency(const run_record& run, std::string_view metric, std::string_view statistic,
                               double wanted);

/// Stage of a request, then phase, kind of work and part.
cause by_stage(const latency_parts& parts, std::string name);

}  // namespace nvlsim
