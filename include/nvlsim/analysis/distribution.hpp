// Distributions of values that occur many times.
#pragma once

#include <optional>
#include <vector>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

/// Nothing when there is no value.
std::optional<distribution> distribution_of(std::vector<weighted> values);

/// A request as its client sees it. [docs/models-and-assumptions.md#inference-front-end]
struct client_view {
  double ttft_s = 0, e2e_s = 0;
  std::optional<double> tpot_s;
};
client_view seen_by_client(const request_record& r, const front_end_costs& server);

}  // namespace nvlsim
