// Scenarios and results as commands take them: files, shipped names and folders.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nvlsim/result.hpp"
#include "nvlsim/scenario.hpp"

namespace nvlsim::cli {

/// A scenario as `load_scenario` reads it; with -v says where it comes from, and what it takes by default.
scenario read_scenario(const std::filesystem::path& file, const std::vector<override_option>& sets,
                       const data_folders& data);

/// A file, with the results that it holds; a scenario holds none.
struct input_file {
  std::filesystem::path path;
  std::vector<result> results;
};

/// A file or shipped scenario, or of a folder every `*.json` that is no `*.trace.json`, sorted. Throws input_error or
/// io_error.
std::vector<input_file> input_files(const std::string& what);

}  // namespace nvlsim::cli
