#include "cli/arguments.hpp"
#include "cli/commands.hpp"

int main(int argc, char** argv) {
  const nvlsim::cli::parsed_command_line line = nvlsim::cli::parse_command_line(argc, argv);
  nvlsim::cli::set_console(line.console);
  return line.todo ? static_cast<int>(nvlsim::cli::execute(*line.todo)) : line.code;
}
