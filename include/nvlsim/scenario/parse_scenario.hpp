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

/// The text of a scenario with overrides written over it and every member by its usual name ("tp" for
/// "tensor_parallel_size"), so that what is written there later replaces it. Where it does not read, which its
/// reader then says, the overrides are written as they are.
value usual_names(value root, const std::vector<override_option>& overrides, const data_folders& data);

}  // namespace nvlsim
