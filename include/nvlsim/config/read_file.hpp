// Files as text.
#pragma once

#include <filesystem>
#include <string>

namespace nvlsim {

/// All of a file. Throws io_error when it cannot be read.
std::string read_file(const std::filesystem::path& file);
/// The same of a file that the program wrote and may write over: it is no input.
std::string read_own_file(const std::filesystem::path& file);

/// Notes that this process reads a file. Whatever opens an input without `read_file` calls it.
void note_read(const std::filesystem::path& file);
/// Whether this process has read the file, by whatever name or link. False for devices and pipes.
bool was_read(const std::filesystem::path& file);

}  // namespace nvlsim
