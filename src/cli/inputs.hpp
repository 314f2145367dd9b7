// Reads the scenarios and results that commands accept: files, shipped names and folders.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim::cli {

/// Reads a scenario with `load_scenario`. With -v, prints its file and the defaults used.
scenario read_scenario(const std::filesystem::path& file, const std::vector<override_option>& sets,
                       const data_folders& data);

/// The contents of a file: results or a scenario.
struct input_contents {
  std::filesystem::path path;
  std::vector<result> results;
  std::optional<scenario> to_run;
};

/// Reads a file, a shipped scenario, or every `*.json` except `*.trace.json` in a folder, sorted by name. Throws
/// input_error with the problems of all files, or io_error.
std::vector<input_contents> read_inputs(const std::string& what, const std::vector<override_option>& sets,
                                        const data_folders& data);

}  // namespace nvlsim::cli
