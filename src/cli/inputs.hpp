// Scenarios and results as commands take them: files, shipped names and folders.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim::cli {

/// A scenario as `load_scenario` reads it; with -v says where it comes from, and what it takes by default.
scenario read_scenario(const std::filesystem::path& file, const std::vector<override_option>& sets,
                       const data_folders& data);

/// What a file holds: results, or a scenario.
struct input_contents {
  std::filesystem::path path;
  std::vector<result> results;
  std::optional<scenario> to_run;
};

/// A file or shipped scenario, or of a folder every `*.json` that is no `*.trace.json`, sorted. Throws input_error
/// with the problems of them all, or io_error.
std::vector<input_contents> read_inputs(const std::string& what, const std::vector<override_option>& sets,
                                        const data_folders& data);

}  // namespace nvlsim::cli
