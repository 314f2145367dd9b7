// One line of progress on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace nvlsim::cli {

/// Done, rate and time left on stderr: in place a few times a second, or with -v where stderr is no terminal a
/// line every ten seconds; nothing otherwise, or with -q.
class progress_line {
 public:
  /// "search", "layouts".
  progress_line(std::string command, std::string unit);
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  void operator()(std::int64_t done, std::int64_t all);

 private:
  std::string command_, unit_;
  bool terminal_, drawn_ = false;
  std::int64_t before_ = -1;  ///< done when the first report came
  std::chrono::steady_clock::time_point begin_, shown_;
};

}  // namespace nvlsim::cli
