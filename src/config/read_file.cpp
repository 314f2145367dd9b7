#include "nvlsim/config/read_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file)) throw io_error(fmt::format("{}: cannot be read", file.string()));
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw io_error(fmt::format("{}: cannot be read", file.string()));
  return text.str();
}

}  // namespace nvlsim
