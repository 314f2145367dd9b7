#include "output/plan_lines.hpp"

#include "nvlsim/output/text.hpp"

namespace nvlsim {

std::string lines_of(const std::string& text, std::size_t indent) {
  std::string out;
  for (const std::string& line : output::wrapped(text, output::table_columns - indent - 2))
    out += std::string(indent + (out.empty() ? 0 : 2), ' ') + line + "\n";
  return out;
}

std::string shell_lines(const std::string& command, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out;
  if (command.starts_with("# ")) {
    for (const std::string& line : output::wrapped(command.substr(2), output::table_columns - indent - 2))
      out += fmt::format("{}# {}\n", margin, line);
    return out;
  }
  std::vector<std::string> words(1);
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < command.size();
    if (c == quote) quote = 0;
    else if (quote == 0 && (c == '\'' || c == '"')) quote = c;
    if (c == ' ' && quote == 0) words.emplace_back();
    else words.back() += c;
    if (escapes) words.back() += command[++i];
  }
  for (std::size_t i = 1; i < words.size(); ++i) {  // an option and its value stay together where they fit
    std::string& option = words[i - 1];
    if (!option.starts_with("--") || option.find(' ') != std::string::npos || words[i].starts_with('-') ||
        output::width(option) + output::width(words[i]) > output::table_columns / 2)
      continue;
    option += ' ' + words[i];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::string line = margin;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t room = output::table_columns - (i + 1 < words.size() ? 2 : 0);  // of " \"
    if (i > 0 && output::width(line) + 1 + output::width(words[i]) > room) {
      out += line + " \\\n";
      line = margin + "   ";
    }
    line += (i > 0 ? " " : "") + words[i];
  }
  return out + line + "\n";
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& t : texts) out += (out.empty() ? "" : "; ") + t;
  return out;
}

std::string reason_of(const pruned_layouts& l) {
  const std::size_t numbers = l.reason.find('N'), layout = l.example.rfind(':');
  if (numbers == std::string::npos || layout == std::string::npos) return l.reason;
  const std::string one = l.example.substr(0, layout);
  if (one == l.reason || one.compare(0, numbers, l.reason, 0, numbers) != 0) return l.reason;
  return one + ", for example";
}

}  // namespace nvlsim
