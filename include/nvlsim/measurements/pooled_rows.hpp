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

/// Like `simulate_row` for pools in a closed loop. Throws input_error if a worker cannot hold the longest request.
std::vector<double> simulate_pooled_row(const inference_row& r, const stack& s);
/// The schedule that `simulate_pooled_row` runs; and the values computed from such a schedule with the iteration
/// times of another stack.
pooled_schedule schedule_pooled_row(const inference_row& r, const stack& s);
std::vector<double> simulate_pooled_row(const inference_row& r, const stack& s, const pooled_summary& schedule);

/// A target's value in the unit of its column.
double in_column(const metric_target& t, const client_times& c, double tokens_per_s, double gpus);

}  // namespace nvlsim
