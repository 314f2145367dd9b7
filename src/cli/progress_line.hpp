// Progress of what takes longer than a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace nvlsim::cli {

/// Shows on stderr how far a command is, from its first second on: in place on a terminal, else a line every ten
/// seconds. With -q, prints nothing. A thread of its own prints, so that work which reports nothing shows its
/// elapsed time.
class progress_line {
 public:
  /// `command` and `unit` label the line: "search", "layouts". Without `even` units take so unequal times that
  /// neither a rate nor the remaining time is shown.
  explicit progress_line(std::string command, std::string unit = {}, bool even = true);
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  /// Counts with rate and remaining time. `all` 0: how many there are is unknown. Thread-safe.
  void operator()(std::int64_t done, std::int64_t all);

 private:
  std::string text() const;
  void print_until_done();

  const std::string command_, unit_;
  const bool even_, terminal_;
  const std::chrono::steady_clock::time_point begin_;
  std::int64_t before_ = -1, done_ = 0, all_ = 0;  ///< counts: at the first report, and now
  bool visible_ = false, over_ = false;
  std::mutex using_it_;
  std::condition_variable ended_;
  std::thread printer_;
};

}  // namespace nvlsim::cli
