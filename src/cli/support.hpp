// Helpers for all commands: data folder, overrides, output, interruption.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim::cli {

/// The folder of shipped inputs: $NVLSIM_DATA, else share/nvlsim beside an installed program, else the source tree
/// around the build folder. Throws io_error if none has the data.
std::filesystem::path data_root();

/// Parses "--set POINTER=VALUE" options. Throws input_error for one without "=".
std::vector<override_option> parse_sets(const std::vector<std::string>& sets);
/// Like parse_sets, for commands whose overrides address a platform, stack or model directly.
std::vector<override_at> parse_input_sets(const std::vector<std::string>& sets);
/// Like parse_sets, for commands that read a platform and a stack but no scenario. Returns the platform's
/// overrides, then the stack's. /platform and /stack select the file as in a scenario. Without them, a pointer
/// into one of the stack's cost groups belongs to the stack and any other to the platform.
std::pair<std::vector<override_at>, std::vector<override_at>> platform_and_stack_sets(
    const std::vector<std::string>& sets);

/// The file of a scenario: the path as given, or the shipped scenario with that name. Throws input_error with the
/// nearest name.
std::filesystem::path scenario_file(const std::string& name_or_path);
/// Shipped scenarios, sorted by name.
std::vector<std::filesystem::path> shipped_scenarios();

/// Writes to stdout. Throws io_error on failure.
void print(std::string_view text);
/// Whether `print` writes tables for people, which may be coloured, from now on.
void print_tables(bool on);
/// Writes a file and replaces the old one only when complete. Throws io_error.
void write_file(const std::filesystem::path& file, std::string_view text);

/// Calls `read` and adds its problems to `problems`, including an unreadable file.
template <class F>
void gather(diagnostics& problems, F&& read) {
  try {
    read();
  } catch (const input_error& e) {
    for (const problem& p : e.problems()) problems.add(p);
  } catch (const io_error& e) {
    problems.add({{}, {}, e.what(), {}, true});
  }
}

/// Names each result that is infeasible on stderr with its reasons, unless stdout is a terminal, which shows them.
/// `side` comes before the name; empty: none.
void tell_infeasible(std::span<const result> results, std::string_view side = {});

/// Reports a failure on stderr and, if `json`, as a JSON document on stdout. Never throws: the streams themselves
/// may have failed. Returns `code`.
exit_code report_failure(exit_code code, std::string_view message, std::span<const problem> problems, bool json);

/// From now on the first SIGINT only sets a flag; the second ends the process.
void catch_interrupts();
/// The same for SIGTERM too, for commands that print what they have when a scheduler ends them.
void catch_termination();
bool interrupted();

}  // namespace nvlsim::cli
