#include <string>
#include <vector>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim {

namespace {

/// Whether a spreadsheet would compute the text: it begins as a formula, and is not an amount such as "-5 GB/s".
bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=@\t+-").find(text.front()) == std::string_view::npos) return false;
  const bool sign = text.front() == '+' || text.front() == '-';
  constexpr std::string_view of_amount = "0123456789.eE abdfghiklmnopstuwzBCFGHKLMOPSTW/%";
  return !sign || text.find_first_not_of(of_amount, 1) != std::string_view::npos;
}

}  // namespace

// An apostrophe comes before text that a spreadsheet would compute ("=1+1").
std::string output::csv_cell(std::string_view text) {
  std::string clean = output::valid_utf8(text);
  if (is_formula(text)) clean.insert(clean.begin(), '\'');
  if (clean.find_first_of(",\"\r\n") == std::string::npos) return clean;
  std::string out = "\"";
  for (const char c : clean) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

namespace {

using output::csv_cell;

std::string value_cell(const value& v) {
  if (const double* d = v.number()) return output::number_text(*d);
  if (const std::int64_t* i = v.integer()) return std::to_string(*i);
  if (const bool* b = v.boolean()) return *b ? "true" : "false";
  return v.string() ? csv_cell(*v.string()) : std::string{};
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& t : texts) out += (out.empty() ? "" : "; ") + t;
  return out;
}

}  // namespace

std::string result_csv(std::span<const result> results) {
  std::vector<std::string> columns;
  for (const result& r : results)
    for (const output::flat_metric& m : output::flat_metrics(r.metrics)) output::merge_names(columns, m.name);
  std::string out = "name,status";
  for (const std::string& c : columns) out += ',' + csv_cell(c);
  out += ",reasons\n";
  for (const result& r : results) {
    const auto metrics = output::flat_metrics(r.metrics);
    out += csv_cell(r.name) + ',' + std::string(name(r.status));
    for (const std::string& c : columns) {
      out += ',';
      for (const output::flat_metric& m : metrics)
        if (m.name == c) out += value_cell(m.content);
    }
    out += ',' + csv_cell(joined(r.reasons)) + '\n';
  }
  return out;
}

}  // namespace nvlsim
