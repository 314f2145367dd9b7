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

}  // namespace nvlsim
