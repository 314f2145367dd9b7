#include "cli/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "cli/console.hpp"

namespace nvlsim::cli {
namespace {

/// Not by stdio, whose lock a child of a fork would find held.
void write_line(std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
    if (n <= 0) return;
    line.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

progress_line::progress_line(std::string command, std::string unit, bool even)
    : command_(std::move(command)), unit_(std::move(unit)), even_(even), terminal_(on_terminal()),
      begin_(std::chrono::steady_clock::now()) {
  if (!is_quiet()) printer_ = std::thread([this] { print_until_done(); });
}

progress_line::~progress_line() {
  {
    const std::lock_guard lock(using_it_);
    over_ = true;
  }
  ended_.notify_all();
  if (printer_.joinable()) printer_.join();
  if (visible_) write_line("\r\033[K");
}

void progress_line::operator()(std::int64_t done, std::int64_t all) {
  const std::lock_guard lock(using_it_);
  if (before_ < 0) before_ = done;
  done_ = done, all_ = all;
}

std::string progress_line::text() const {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (before_ < 0) return fmt::format("{}: {}{:.0f} s", command_, unit_.empty() ? "" : unit_ + ", ", elapsed);
  if (!even_) return fmt::format("{}: {} of {} {}, {:.0f} s", command_, done_, all_, unit_, elapsed);
  const double rate = static_cast<double>(done_ - before_) / elapsed;
  if (all_ <= 0) return fmt::format("{}: {} {}, {:.0f} s", command_, done_, unit_, elapsed);
  std::string line = fmt::format("{}: {} of {} {}, {:.3g} per second", command_, done_, all_, unit_, rate);
  if (rate > 0) line += fmt::format(", {:.0f} s left", static_cast<double>(all_ - done_) / rate);
  return line;
}

void progress_line::print_until_done() {
  using namespace std::chrono_literals;
  std::unique_lock lock(using_it_);
  const auto over = [this] { return over_; };
  if (ended_.wait_for(lock, terminal_ ? 1s : 10s, over)) return;
  do {
    visible_ = terminal_;
    write_line(terminal_ ? fmt::format("\r{}\033[K", text()) : fmt::format("nvlsim: {}\n", text()));
  } while (!ended_.wait_for(lock, terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10), over));
}

}  // namespace nvlsim::cli
