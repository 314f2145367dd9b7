// What every command needs: where the data is, overrides, output, interruption.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim::cli {

/// The shipped inputs: $NVLSIM_DATA, else share/nvlsim beside an installed program, else the source tree around
/// the build folder. Throws io_error naming the places tried.
std::filesystem::path data_root();

/// "--set POINTER=VALUE" options. Throws input_error for one without "=".
std::vector<override_option> parse_sets(const std::vector<std::string>& sets);
/// The same for commands whose overrides address a platform, stack or model itself.
std::vector<override_at> parse_input_sets(const std::vector<std::string>& sets);
/// The same for commands that read a platform and a stack and no scenario, those of the platform first: /platform
/// and /stack reach into them as in a scenario, a stack's own groups of costs alone say that they are its, and the
/// rest is of the platform.
std::pair<std::vector<override_at>, std::vector<override_at>> platform_and_stack_sets(
    const std::vector<std::string>& sets);

/// A scenario's file: the path as given, or a shipped scenario of that name. Throws input_error with the nearest
/// name.
std::filesystem::path scenario_file(const std::string& name_or_path);
/// Shipped scenarios, sorted by name.
std::vector<std::filesystem::path> shipped_scenarios();

/// Writes to stdout. Throws io_error when that fails.
void print(std::string_view text);
/// Whether what is printed from now on are tables for people, which may be coloured.
void print_tables(bool on);
/// Writes a file, replacing it only once complete. Throws io_error.
void write_file(const std::filesystem::path& file, std::string_view text);

/// Calls `read`; the problems of what it reads are added to `problems`, one that cannot be read among them.
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

/// Says what went wrong on stderr, and on stdout as one JSON document when that is wanted. Never throws: the
/// streams may be what failed. Returns `code`.
exit_code report_failure(exit_code code, std::string_view message, std::span<const problem> problems, bool json);

/// From now on SIGINT only sets a flag; a second one ends the process.
void catch_interrupts();
bool interrupted();

}  // namespace nvlsim::cli
