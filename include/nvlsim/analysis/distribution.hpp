// Builds distributions from weighted values.
#pragma once

#include <optional>
#include <vector>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

/// Empty when `values` is empty.
std::optional<distribution> distribution_of(std::vector<weighted> values);

/// Latencies of a request as its client sees them. [docs/models-and-assumptions.md#inference-front-end]
struct client_view {
  double ttft_s = 0, e2e_s = 0;
  std::optional<double> tpot_s;
};
client_view seen_by_client(const request_record& r, const front_end_costs& server);

}  // namespace nvlsim
