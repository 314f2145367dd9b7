// Turns rows of training.csv into simulations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// A row's simulation inputs and the value to compare.
struct training_row {
  validation_record record;  ///< keys filled; status ok until a problem is found
  platform hardware;
  const model* net = nullptr;
  const stack* software = nullptr;
  training_workload workload;
  bool full_attention_flops = false;  ///< the source counts the full s x s attention matrix
  bool defaulted_layout = false;      ///< precision, layout, micro-batch size or VP was unknown
};

/// Reads a row. Missing values take the documented defaults, listed in `record.notes`. Sets `record.status` and
/// `reason` if the row cannot be simulated.
training_row read_training_row(const csv_row& row, const std::string& table, input_cache& inputs);

/// Model, size of the NVLink domain (rack or server) and bits of the operands of a row that can be simulated.
std::string cell_of(const training_row& r);

/// The row's metric for a step time of `step`, in the unit of its column.
double metric_of_step(const training_row& r, seconds step);

/// Step time computed as the longest path.
seconds step_time(const training_row& r);

}  // namespace nvlsim
