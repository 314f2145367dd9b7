// A progress line on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace nvlsim::cli {

/// Shows count, rate and remaining time on stderr. On a terminal, updates in place a few times per second. With -v
/// and without a terminal, prints a line every ten seconds. Otherwise, or with -q, prints nothing.
class progress_line {
 public:
  /// `command` and `unit` label the line: "search", "layouts".
  progress_line(std::string command, std::string unit);
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  void operator()(std::int64_t done, std::int64_t all);

 private:
  std::string command_, unit_;
  bool terminal_, visible_ = false;
  std::int64_t before_ = -1;  ///< count at the first report
  std::chrono::steady_clock::time_point begin_, shown_;
};

}  // namespace nvlsim::cli
