// How much the program says beside what it was asked for, and in which colours.
#pragma once

#include <string>
#include <string_view>

namespace nvlsim::cli {

/// What -v, -q and --color ask for.
struct console_options {
  bool verbose = false, quiet = false;
  std::string color =
      "auto";  ///< "auto": on a terminal, unless NO_COLOR is set or TERM is "dumb"; "always", "never"
};
void set_console(const console_options& o);

/// A line on stderr about what goes on; none with -q.
void note(std::string_view line);
/// A line on stderr with -v only: what was read, chosen, taken for granted.
void detail(std::string_view line);
/// Whether stderr is a terminal that wants progress.
bool shows_progress();
/// "COMMAND: DONE of ALL WHAT" in place on stderr, taken away once all is done.
void show_progress(std::string_view command, std::size_t done, std::size_t all, std::string_view what);

/// A table as stdout shows it: with headings and verdicts in colour where colours are wanted.
std::string for_stdout(std::string_view table);
/// A message as stderr shows it: with "nvlsim:" or the place of the problem in colour.
std::string for_stderr(std::string_view message);

}  // namespace nvlsim::cli
