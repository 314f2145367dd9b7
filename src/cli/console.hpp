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
/// Whether to show progress: stderr is a terminal and -q is not given.
bool shows_progress();
/// Shows "COMMAND: DONE of ALL WHAT" in place on stderr. Erases it when all is done.
void show_progress(std::string_view command, std::size_t done, std::size_t all, std::string_view what);

/// A table for stdout, with coloured headings and verdicts if colours are on.
std::string for_stdout(std::string_view table);
/// A message for stderr, with "nvlsim:" or the problem's location coloured if colours are on.
std::string for_stderr(std::string_view message);

}  // namespace nvlsim::cli
