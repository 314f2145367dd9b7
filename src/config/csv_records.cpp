#include "nvlsim/config/csv_records.hpp"

#include <fmt/format.h>

#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::config {

std::vector<std::vector<std::string>> csv_records(std::string_view text, const std::string& file) {
  std::vector<std::vector<std::string>> out;
  std::vector<std::string> row(1);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') row.back() += c;
      else if (i + 1 < text.size() && text[i + 1] == '"') row.back() += text[++i];
      else quoted = false;
    } else if (c == '"' && row.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      row.emplace_back();
    } else if (c == '\n') {
      if (!row.back().empty() && row.back().back() == '\r') row.back().pop_back();
      out.push_back(std::exchange(row, std::vector<std::string>(1)));
    } else {
      row.back() += c;
    }
  }
  if (quoted) throw input_error({{file, "", fmt::format("row {}: a quote is not closed", out.size() + 1), {}}});
  if (row.size() > 1 || !row.front().empty()) out.push_back(std::move(row));
  return out;
}

}  // namespace nvlsim::config
