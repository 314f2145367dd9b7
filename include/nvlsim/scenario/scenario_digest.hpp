// Digests of thousands of scenarios that share files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// The same folders, from which each file is read once: what it says later is not seen. For programs that read
/// many scenarios at once, from any number of threads.
data_folders keep_files(data_folders data);

/// The digest of the inputs of the scenario that `load_scenario` returns. Throws as that does. Takes a tenth of
/// its time if files are kept.
std::string scenario_digest(const std::filesystem::path& file, const std::vector<override_option>& overrides,
                            const data_folders& data);

}  // namespace nvlsim
