// Rows of inference.csv whose prompts are worked on by GPUs of their own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/measurements/inference_rows.hpp"

namespace nvlsim {

/// Reads the pools of a row into its workload and platform: what its notes or its layout column say, else equal
/// workers of as many GPUs as its expert parallelism. Returns what was assumed; nothing when no pools are stated.
std::optional<std::string> read_pools(const csv_row& row, inference_row& out);

/// Values of the row's targets, as `simulate_row`, in a closed loop. Throws input_error when a worker cannot hold
/// the longest request.
std::vector<double> simulate_pooled_row(const inference_row& r, const stack& s);
/// What that runs, and the same values from the iterations of such a run whose times have changed since.
pooled_schedule schedule_pooled_row(const inference_row& r, const stack& s);
std::vector<double> simulate_pooled_row(const inference_row& r, const stack& s, const pooled_summary& schedule);

/// A target's value in its column's unit.
double in_column(const metric_target& t, const client_times& c, double tokens_per_s, double gpus);

}  // namespace nvlsim
