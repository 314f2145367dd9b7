#include "cli/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace nvlsim::cli {
namespace {

console_options in_force;

constexpr std::string_view bold = "\033[1m", red = "\033[1;31m", yellow = "\033[33m", green = "\033[32m",
                           ends_colour = "\033[0m";

/// [https://no-color.org]
bool colors_on(int stream) {
  if (in_force.color != "auto") return in_force.color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if ((no_color && *no_color) || (terminal && std::string_view(terminal) == "dumb")) return false;
  return ::isatty(stream) != 0;
}

void paint(std::string& line, std::string_view word, std::string_view color) {
  const std::size_t at = line.find(word);
  if (at == std::string::npos) return;
  line.insert(at + word.size(), ends_colour);
  line.insert(at, color);
}

constexpr std::pair<std::string_view, std::string_view> verdicts[] = {{"infeasible", red},   {"cannot run", red},
                                                                      {"FAIL ", red},        {"failed", red},
                                                                      {"saturated", yellow}, {"pass ", green}};

}  // namespace

void set_console(const console_options& o) { in_force = o; }

void note(std::string_view line) {
  if (!in_force.quiet) fmt::print(stderr, "{}\n", line);
}

void detail(std::string_view line) {
  if (in_force.verbose) fmt::print(stderr, "nvlsim: {}\n", line);
}

bool is_quiet() { return in_force.quiet; }

bool on_terminal() { return ::isatty(STDERR_FILENO) != 0; }

std::string for_stdout(std::string_view table) {
  if (!colors_on(STDOUT_FILENO)) return std::string(table);
  std::string out;
  for (std::size_t from = 0; from < table.size();) {
    const std::size_t end = std::min(table.find('\n', from), table.size());
    std::string line(table.substr(from, end - from));
    const bool heading = !line.empty() && line.front() != ' ' && table.substr(end).starts_with("\n  ");
    from = end + 1;
    bool painted = false;
    for (const auto& [word, color] : verdicts)
      if (!painted && line.find(word) != std::string::npos) paint(line, word, color), painted = true;
    if (heading && !painted) line = fmt::format("{}{}{}", bold, line, ends_colour);
    out += line;
    if (end < table.size()) out += '\n';
  }
  return out;
}

std::string for_stderr(std::string_view message) {
  if (!colors_on(STDERR_FILENO)) return std::string(message);
  const std::size_t colon = message.find(": ");
  if (colon == std::string_view::npos) return std::string(message);
  return fmt::format("{}{}{}{}", red, message.substr(0, colon + 1), ends_colour, message.substr(colon + 1));
}

}  // namespace nvlsim::cli
