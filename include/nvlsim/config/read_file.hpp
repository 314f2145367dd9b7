// Files as text.
#pragma once

#include <filesystem>
#include <string>

namespace nvlsim {

/// All of a file. Throws io_error when it cannot be read.
std::string read_file(const std::filesystem::path& file);

}  // namespace nvlsim
