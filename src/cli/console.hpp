// Verbosity and colours of terminal output.
#pragma once

#include <string>
#include <string_view>

namespace nvlsim::cli {

/// The settings of -v, -q and --color.
struct console_options {
  bool verbose = false, quiet = false;
  std::string color =
      "auto";  ///< "auto": on a terminal, unless NO_COLOR is set or TERM is "dumb"; "always", "never"
};
void set_console(const console_options& o);

/// Prints a line about progress to stderr, unless -q is given.
void note(std::string_view line);
/// Prints a line to stderr if -v is given: files read, choices and defaults.
void detail(std::string_view line);
/// Whether -q is given.
bool is_quiet();
/// Whether stderr is a terminal.
bool on_terminal();

/// A table for stdout, with coloured headings and verdicts if colours are on.
std::string for_stdout(std::string_view table);
/// A message for stderr, with "nvlsim:" or the problem's location coloured if colours are on.
std::string for_stderr(std::string_view message);

}  // namespace nvlsim::cli
