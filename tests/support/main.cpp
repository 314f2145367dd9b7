#define CATCH_CONFIG_RUNNER
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  fs::current_path(NVLSIM_TEST_FOLDER);  // NVLSIM_SOURCE_DIR and NVLSIM_BINARY_DIR are relative to it
  // Tests that run side by side use the same names of temporary files.
  const fs::path own = fs::temp_directory_path() / ("nvlsim-tests-" + std::to_string(::getpid()));
  fs::create_directories(own);
  ::setenv("TMPDIR", own.c_str(), 1);
  const int failed = Catch::Session().run(argc, argv);
  std::error_code kept;  // what a killed child of a test left does not count
  fs::remove_all(own, kept);
  return failed;
}
