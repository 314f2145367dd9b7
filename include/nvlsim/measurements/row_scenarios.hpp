// Rows of published measurements as scenarios.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// The scenario of each row of a serving table that can be simulated, by the row's id. `run` of it gives what
/// `validate` gives of the row, to 1e-9, except for long runs, whose middle alone is simulated, for rows that do
/// not fit as modelled, and for open loops of more than four replicas, of which four are. Throws as
/// `validate_table`; throws input_error for a table of another kind.
std::vector<std::pair<std::string, value>> row_scenarios(const std::filesystem::path& table,
                                                         const data_folders& data);

}  // namespace nvlsim
