// Golden files: expected output compared byte by byte. `NVLSIM_APPROVE=1 ctest ...` writes what was found instead;
// read the difference before committing it.
#pragma once

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace nvlsim::test {

inline std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Checks `found` against tests/golden/`name`.
inline void check_golden(const std::string& name, const std::string& found) {
  const std::string path = std::string(NVLSIM_SOURCE_DIR "/tests/golden/") + name;
  if (std::getenv("NVLSIM_APPROVE")) {
    std::ofstream out(path, std::ios::binary);
    out << found;
    REQUIRE(out.flush());
  }
  INFO("golden file " << name << "; approve a wanted change with NVLSIM_APPROVE=1");
  CHECK(read_whole(path) == found);
}

}  // namespace nvlsim::test
