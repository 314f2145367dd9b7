// Scenarios that a program wrote, without a file.
#pragma once

#include <filesystem>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Reads `root` as if it were the content of a scenario file. `label` names it in messages ("command line"); paths
/// in it are relative to the working folder. Throws input_error with all problems, or io_error.
scenario parse_scenario(value root, const std::string& label, const std::vector<override_option>& overrides,
                        const data_folders& data);

}  // namespace nvlsim
