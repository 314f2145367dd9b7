#include "output/plan_lines.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

/// The command that a shell reads from lines.
std::string read_by_shell(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    std::string_view line = lines.substr(0, end);
    line.remove_prefix(line.find_first_not_of(' '));
    const bool goes_on = line.ends_with(" \\");
    if (goes_on) line.remove_suffix(1);
    out.append(line);
    lines.remove_prefix(end + 1);
  }
  return out;
}

void check_width(std::string_view lines) {
  for (std::size_t at = 0, end = 0; (end = lines.find('\n', at)) != std::string_view::npos; at = end + 1)
    CHECK(output::width(lines.substr(at, end - at)) <= output::table_columns);
}

TEST_CASE("Long commands are broken where a shell reads them as one") {
  std::string command = "vllm serve some-model --kv-transfer-config '{\"kv_connector\": \"NixlConnector\"}'";
  for (int i = 0; i < 40; ++i) {
    command += " --option-" + std::to_string(i) + std::string(static_cast<std::size_t>(i % 7), 'x');
    const std::string lines = shell_lines(command, 2);
    CHECK(read_by_shell(lines) == command);
    check_width(lines);
  }
  CHECK(shell_lines("a b", 2) == "  a b\n");
}

TEST_CASE("Blanks in quotes do not break a command") {
  const std::string quoted = "'" + std::string(50, 'a') + " " + std::string(50, 'b') + "'";
  const std::string apostrophe = "--set " + output::shell_word("it's " + std::string(60, 'a') + " b");
  CHECK(shell_lines("run " + apostrophe, 0) == "run --set \\\n    " + apostrophe.substr(6) + "\n");
  CHECK(shell_lines("run " + quoted + " more", 2) == "  run \\\n      " + quoted + " \\\n      more\n");
}

TEST_CASE("An option and its value stay on one line") {
  const std::string lines = shell_lines("run " + std::string(60, 'a') + " --option value", 2);
  CHECK(lines == "  run " + std::string(60, 'a') + " \\\n      --option value\n");
}

TEST_CASE("Long comments of commands stay comments") {
  const std::string lines = shell_lines("# " + std::string(60, 'a') + " " + std::string(60, 'b'), 2);
  CHECK(lines == "  # " + std::string(60, 'a') + "\n  # " + std::string(60, 'b') + "\n");
}

}  // namespace
}  // namespace nvlsim
