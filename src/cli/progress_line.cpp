#include "cli/progress_line.hpp"

#include <fmt/format.h>
#include <cstdio>
#include <utility>

#include "cli/console.hpp"

namespace nvlsim::cli {

using clock = std::chrono::steady_clock;

progress_line::progress_line(std::string command, std::string unit)
    : command_(std::move(command)), unit_(std::move(unit)), terminal_(shows_progress()), begin_(clock::now()),
      shown_(begin_) {}

progress_line::~progress_line() {
  if (visible_) fmt::print(stderr, "\r\033[K");
}

void progress_line::operator()(std::int64_t done, std::int64_t all) {
  const auto now = clock::now();
  if (before_ < 0) before_ = done;
  if (now - shown_ < (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10))) return;
  shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(done - before_) / elapsed;
  std::string line = fmt::format("{}: {} of {} {}, {:.3g} per second", command_, done, all, unit_, rate);
  if (rate > 0) line += fmt::format(", {:.0f} s left", static_cast<double>(all - done) / rate);
  if (!terminal_) return detail(line);
  visible_ = true;
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
}

}  // namespace nvlsim::cli
