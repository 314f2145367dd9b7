#include "nvlsim/config/read_file.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace {

namespace fs = std::filesystem;

struct folder {
  fs::path path = fs::temp_directory_path() / ("nvlsim_read_file_" + std::to_string(::getpid()));
  folder() { fs::create_directories(path / "in"); }
  ~folder() { fs::remove_all(path); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
};

TEST_CASE("A file that was read is known by every name") {
  const folder f;
  std::ofstream(f.path / "a") << "x";
  std::ofstream(f.path / "b") << "x";
  fs::create_symlink("a", f.path / "link");
  fs::create_hard_link(f.path / "a", f.path / "hard");
  CHECK_FALSE(nvlsim::was_read(f.path / "a"));
  CHECK(nvlsim::read_file(f.path / "a") == "x");
  for (const char* name : {"a", "link", "hard", "in/../a"}) CHECK(nvlsim::was_read(f.path / name));
  for (const char* name : {"b", "none", "in"}) CHECK_FALSE(nvlsim::was_read(f.path / name));
  nvlsim::note_read("/dev/null");
  CHECK_FALSE(nvlsim::was_read("/dev/null"));  // a device keeps nothing that could be lost
}

}  // namespace
