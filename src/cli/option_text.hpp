// What the commands and options are, in words: the one description behind --help, man pages and shell completion.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace nvlsim::cli {

/// Takes numbers from `least` to `most`, and no NaN; says what is wrong as people write numbers.
CLI::Validator number_from(double least, double most);
/// The same of integers.
CLI::Validator whole_from(std::int64_t least, std::int64_t most);

struct option_text {
  std::vector<std::string> names;  ///< "-o", "--output"; of a positional argument "SCENARIO"
  std::string metavar;             ///< "DIR", "table|json", empty for a flag
  std::vector<std::string> choices;
  std::string description;  ///< with range and default
  bool positional = false, required = false;
  bool several = false;  ///< may be given more than once

  /// "-o, --output DIR"
  std::string heading() const;
};

/// Positional arguments in order, then options; hidden ones left out.
std::vector<option_text> options_of(const CLI::App& command);
option_text describe(const CLI::Option& o);

/// Subcommands that are not hidden, in order.
std::vector<const CLI::App*> commands_under(const CLI::App& command);
/// "nvlsim platform show"
std::string full_name(const CLI::App& command);
/// "nvlsim run [OPTIONS] SCENARIO..."
std::string usage_of(const CLI::App& command);

/// The page of --help: 80 columns, but for examples.
std::string help_page(const CLI::App& command);
/// The same as a manual page of section 1.
std::string manual_page(const CLI::App& command);

/// Makes CLI11 print `help_page`.
class page_formatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return help_page(*app);
  }
};

}  // namespace nvlsim::cli
