// The folder of the sources, whose data and shipped files tests read.
#pragma once

#include <filesystem>

namespace nvlsim::test {

inline const std::filesystem::path root = NVLSIM_SOURCE_DIR;

}  // namespace nvlsim::test
