// Documents and files made by the tests.
#pragma once

#include <catch2/catch.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "nvlsim/config/document.hpp"

namespace nvlsim::config::test {

/// All problems, a line each.
inline std::string text_of(const diagnostics& problems) {
  std::string out;
  for (const problem& p : problems.sorted()) out += p.text() + "\n";
  return out;
}

/// The document of a text that must be free of problems.
inline document parsed(std::string_view text) {
  diagnostics problems;
  document d = parse(text, {"file", "f.json"}, problems);
  CHECK(text_of(problems) == "");
  return d;
}

/// A folder of its own, removed at the end.
class scratch_folder {
 public:
  scratch_folder() {
    static std::atomic<int> count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("nvlsim-test-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~scratch_folder() { std::filesystem::remove_all(path_); }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace nvlsim::config::test
