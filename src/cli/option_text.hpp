// Descriptions of commands and options, used by --help, man pages and shell completion.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace nvlsim::cli {

/// Accepts numbers from `least` to `most`, not NaN.
CLI::Validator number_from(double min, double max);
/// Accepts integers from `least` to `most`.
CLI::Validator whole_from(std::int64_t min, std::int64_t max);

struct option_text {
  std::vector<std::string> names;  ///< "-o", "--output", or "SCENARIO" for a positional argument
  std::string metavar;             ///< "DIR", "table|json"; empty for a flag
  std::vector<std::string> choices;
  std::string description;  ///< includes range and default
  bool positional = false, required = false;
  bool several = false;  ///< accepts several values

  /// The option with its names and value: "-o, --output DIR".
  std::string heading() const;
};

/// Adds --format with the names it allows.
void add_format(CLI::App* c, std::string& format, std::vector<std::string> names);

/// Visible positional arguments in order, then visible options.
std::vector<option_text> options_of(const CLI::App& command);
option_text describe(const CLI::Option& o);

/// Visible subcommands in order.
std::vector<const CLI::App*> commands_under(const CLI::App& command);
/// The command with its parents: "nvlsim platform show".
std::string full_name(const CLI::App& command);
/// The usage line: "nvlsim run [OPTIONS] SCENARIO...".
std::string usage_of(const CLI::App& command);

/// The text of --help, in 80 columns except for examples.
std::string help_page(const CLI::App& command);
/// The manual page (section 1).
std::string manual_page(const CLI::App& command);

/// Makes CLI11 print `help_page`.
class page_formatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return help_page(*app);
  }
};

}  // namespace nvlsim::cli
