#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <filesystem>

int main(int argc, char** argv) {
  std::filesystem::current_path(NVLSIM_TEST_FOLDER);  // NVLSIM_SOURCE_DIR and NVLSIM_BINARY_DIR are relative to it
  return Catch::Session().run(argc, argv);
}
