#include "nvlsim/config/read_file.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

/// Regular files by device and number: one file however it is named.
using file_identity = std::pair<dev_t, ino_t>;

struct files_read {
  std::mutex guard;
  std::set<file_identity> seen;
};

files_read& files() {
  static files_read all;
  return all;
}

/// Empty pair of zeros for what is not a regular file.
file_identity identity_of(const std::filesystem::path& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return {};
  return {s.st_dev, s.st_ino};
}

}  // namespace

void note_read(const std::filesystem::path& file) {
  const file_identity id = identity_of(file);
  if (id == file_identity{}) return;
  const std::lock_guard hold(files().guard);
  files().seen.insert(id);
}

bool was_read(const std::filesystem::path& file) {
  const file_identity id = identity_of(file);
  const std::lock_guard hold(files().guard);
  return files().seen.count(id) > 0;
}

std::string read_file(const std::filesystem::path& file) {
  note_read(file);
  return read_own_file(file);
}

std::string read_own_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file)) throw io_error(fmt::format("{}: cannot be read", file.string()));
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw io_error(fmt::format("{}: cannot be read", file.string()));
  return text.str();
}

}  // namespace nvlsim
