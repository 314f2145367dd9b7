// Rows of published measurements as scenarios.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/measurements/row_runs.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// The scenario of a row.
struct row_scenario {
  std::string id;  ///< of the row
  value scenario;
  std::vector<row_figure> figures;  ///< the row's columns as metrics of its run
};
/// The scenario of each row of a serving table that can be simulated. `run` of it gives what `validate` gives of
/// the row, to 1e-9: the same values, or the same reason why it cannot run. Of an open loop of more than four
/// replicas it has four, with their share of the arrivals. Throws as `validate_table`; throws input_error for a
/// table of another kind.
std::vector<row_scenario> row_scenarios(const std::filesystem::path& table, const data_folders& data);

}  // namespace nvlsim
