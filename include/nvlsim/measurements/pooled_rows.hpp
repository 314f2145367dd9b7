// Rows of inference.csv with disaggregated prefill.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/measurements/inference_rows.hpp"

namespace nvlsim {

/// Reads the pools of a row into its workload and platform. Uses the row's notes or layout column; otherwise
/// assumes equal workers with as many GPUs as the expert parallel size. Returns the assumptions made, or empty if
/// the row states no pools.
std::optional<std::string> read_pools(const csv_row& row, inference_row& out);

}  // namespace nvlsim
