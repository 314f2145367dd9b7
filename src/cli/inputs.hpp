// Scenarios and results as commands take them: files, shipped names and folders.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nvlsim/result.hpp"

namespace nvlsim::cli {

/// A file, with the results that it holds; a scenario holds none.
struct input_file {
  std::filesystem::path path;
  std::vector<result> results;
};

/// A file or shipped scenario, or of a folder every `*.json` that is no `*.trace.json`, sorted. Throws input_error or
/// io_error.
std::vector<input_file> input_files(const std::string& what);

}  // namespace nvlsim::cli
