#include "output/plan_lines.hpp"

#include "nvlsim/output/text.hpp"

namespace nvlsim {

std::string lines_of(const std::string& text, std::size_t indent) {
  std::string out;
  for (const std::string& line : output::wrapped(text, output::table_columns - indent - 2))
    out += std::string(indent + (out.empty() ? 0 : 2), ' ') + line + "\n";
  return out;
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
