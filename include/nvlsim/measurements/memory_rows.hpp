// Peaks of training memory, by framework.
#pragma once

#include <string>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"

namespace nvlsim {

/// Compares one published peak with that of its configuration, by its kind: allocated by the framework, held by
/// its allocator, or of the device. `published` and `simulated` are in the unit of the cell.
validation_record compare_peak(const csv_row& row, const std::string& table, input_cache& inputs);

}  // namespace nvlsim
