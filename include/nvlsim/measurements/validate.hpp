// Published measurements against the simulator.
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

/// Called with rows done and rows in all.
using progress = std::function<void(std::size_t, std::size_t)>;

/// Runs every row of a table; its header tells the kind. Throws io_error, or input_error for a table of unknown
/// kind.
std::vector<validation_record> validate_table(const std::filesystem::path& file, const data_folders& data,
                                              const progress& report = {});

}  // namespace nvlsim
