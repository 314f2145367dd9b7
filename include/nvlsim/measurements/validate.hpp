// Compares published measurements with simulated values.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/validation.hpp"
#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Called with the number of finished rows and of all rows.
using progress = std::function<void(std::size_t, std::size_t)>;

/// Simulates every row of a table. The header determines the kind of table. Throws io_error, or input_error if the
/// kind is unknown.
std::vector<validation_record> validate_table(const std::filesystem::path& file, const data_folders& data,
                                              const progress& report = {});

}  // namespace nvlsim
