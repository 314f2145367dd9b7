// A row of training.csv as a simulation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// What a row asks to be simulated and compared.
struct training_row {
  validation_record record;  ///< keys filled; ok until something says otherwise
  platform hardware;
  const model* net = nullptr;
  const stack* software = nullptr;
  training_workload work;
  bool full_attention_flops = false;  ///< the source counts the whole s x s matrix
  bool defaulted_layout = false;      ///< precision, layout, micro-batch or VP was unknown
};

/// Reads a row. What it lacks takes the documented default, said in `record.notes`; what cannot be simulated sets
/// `record.status` and `reason`.
training_row read_training_row(const csv_row& row, const std::string& table, input_cache& inputs);

/// Simulated value of the row's metric for a step that takes `step`, in the column's unit.
double metric_of_step(const training_row& r, seconds step);

/// Step time by longest path.
seconds step_time(const training_row& r);

}  // namespace nvlsim
