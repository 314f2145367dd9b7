// Decomposes request latencies into stages.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/time_slices.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/result.hpp"

namespace nvlsim {

/// Whether these are the parts of a latency of requests.
bool is_latency(metric_parts p);

struct latency_parts {
  /// Stages in order: "queue", "prefill", "transfer", "decode queue", "decode", "server". The slices of a stage
  /// say what the request's worker did in that time. All slices add up to the statistic.
  std::vector<std::pair<std::string, std::vector<time_slice>>> stages;
  std::string note;  ///< which request or gap is decomposed

  std::vector<time_slice> slices() const;
};

/// Decomposes the mean over counted requests, or the request whose latency is nearest to a percentile. Requires a
/// serving run and the parts of a latency.
latency_parts parts_of_latency(const run_record& run, metric_parts of, std::string_view statistic, double wanted);

/// A tree by stage, then phase, kind of work and part.
cause by_stage(const latency_parts& parts, std::string name);

}  // namespace nvlsim
