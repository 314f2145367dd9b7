#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "nvlsim/output/compare_report.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim::output {
namespace {

using analysis::comparison;
using analysis::gate_outcome;
using analysis::metric_change;

/// The key that ends with the unit: "ttft_s" for "ttft_s.p99".
std::string unit_key(const std::string& metric) { return metric.substr(0, metric.find('.')); }

std::string shown(const std::string& metric, const std::optional<double>& v) {
  return v ? scaled(unit_key(metric), *v) : "-";
}

std::string shown_change(const metric_change& m) { return m.change ? percent_change(*m.change) : "-"; }

/// Visits the rows of one scenario, which are consecutive.
template <class Visit>
void for_rows_of(const comparison& c, const std::string& scenario, Visit visit) {
  for (const metric_change& m : c.rows)
    if (m.scenario == scenario) visit(m);
}

std::string status_text(const analysis::scenario_pair& s) {
  if (s.a == s.b && s.a == run_status::ok) return {};
  return fmt::format(" (A {}, B {})", name(s.a), name(s.b));
}

constexpr std::size_t max_lines = 12, max_words = 3;

std::string input_lines(const analysis::scenario_pair& s) {
  std::string out = "  inputs that differ\n";
  for (std::size_t i = 0; i < std::min(max_lines, s.inputs.size()); ++i)
    for (const std::string& line :
         wrapped(s.inputs[i].pointer + "  " + change_text(s.inputs[i]), table_columns - 4))
      out += "    " + line + '\n';
  if (s.inputs.size() > max_lines)
    out += fmt::format("    and {} more; use --format json to see all\n", s.inputs.size() - max_lines);
  return out;
}

/// Escapes text for a cell of a Markdown table.
std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : one_line(text, std::string::npos)) {
    if (std::string_view("|\\`*_<>[]").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string code(std::string_view text) {
  std::string clean = one_line(text, std::string::npos);
  std::replace(clean.begin(), clean.end(), '`', '\'');
  std::replace(clean.begin(), clean.end(), '|', '/');
  return "`" + clean + "`";
}

}  // namespace

std::string change_text(const analysis::input_change& i) {
  const auto text = [](const value& v) {
    if (v.is_null()) return std::string("none");
    if (v.string()) return one_line(*v.string(), 60);
    std::string json = to_json(v, 0);
    while (json.ends_with('\n')) json.pop_back();
    return one_line(json, 60);
  };
  return fmt::format("{} -> {}", text(i.a), text(i.b));
}

std::string changed_inputs_text(const comparison& c, const std::string& scenario, std::size_t max) {
  const auto s =
      std::find_if(c.scenarios.begin(), c.scenarios.end(), [&](const auto& p) { return p.scenario == scenario; });
  if (s == c.scenarios.end()) return {};
  std::string out;
  for (std::size_t i = 0; i < std::min(max, s->inputs.size()); ++i)
    out += fmt::format("{}{} {}", i > 0 ? "; " : "", s->inputs[i].pointer, change_text(s->inputs[i]));
  if (s->inputs.size() > max) out += fmt::format("; and {} more", s->inputs.size() - max);
  return out;
}

std::string compare_table(const comparison& c) {
  std::string out;
  for (const analysis::scenario_pair& s : c.scenarios) {
    const std::string status = status_text(s);
    out += one_line(s.scenario, table_columns - status.size()) + status + '\n';
    for (const std::string& why : s.reasons)
      for (const std::string& line : wrapped(why, table_columns - 2)) out += fmt::format("  {}\n", line);
    std::vector<std::vector<std::string>> rows = {{"", "A", "B", "change"}};
    for_rows_of(c, s.scenario, [&](const metric_change& m) {
      rows.push_back({m.metric, shown(m.metric, m.a), shown(m.metric, m.b), shown_change(m)});
    });
    if (rows.size() > 1) out += grid(rows, 2);
    if (!s.inputs.empty()) out += input_lines(s);
    out += '\n';
  }
  for (const std::string& n : c.only_in_a) out += "only in A: " + one_line(n, table_columns - 11) + '\n';
  for (const std::string& n : c.only_in_b) out += "only in B: " + one_line(n, table_columns - 11) + '\n';
  if (!c.only_in_a.empty() || !c.only_in_b.empty()) out += '\n';
  for (const gate_outcome& g : c.gates) {
    out +=
        one_line(fmt::format("{}  {}  {}", g.failed ? "FAIL" : "pass", g.rule.text, g.on.scenario), table_columns);
    out += '\n';
    for (const std::string& line : wrapped(g.reason, table_columns - 6)) out += "      " + line + '\n';
    const std::string moved = g.failed ? changed_inputs_text(c, g.on.scenario, max_words) : "";
    if (!moved.empty())
      for (const std::string& line : wrapped("inputs: " + moved, table_columns - 6)) out += "      " + line + '\n';
  }
  if (!c.gates.empty()) {
    const auto failed = std::count_if(c.gates.begin(), c.gates.end(), [](const auto& g) { return g.failed; });
    out += fmt::format("{} of {} gates failed\n", failed, c.gates.size());
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::string compare_markdown(const comparison& c) {
  std::string out;
  for (const analysis::scenario_pair& s : c.scenarios) {
    out += fmt::format("### {}{}\n\n", markdown_cell(s.scenario), status_text(s));
    for (const std::string& why : s.reasons) out += fmt::format("{}\n\n", markdown_cell(why));
    std::string rows;
    for_rows_of(c, s.scenario, [&](const metric_change& m) {
      rows += fmt::format("| {} | {} | {} | {} |\n", code(m.metric), shown(m.metric, m.a), shown(m.metric, m.b),
                          shown_change(m));
    });
    if (!rows.empty()) out += "| metric | A | B | change |\n|:--|--:|--:|--:|\n" + rows + '\n';
    if (!s.inputs.empty()) {
      out += "| input that differs | change |\n|:--|:--|\n";
      for (std::size_t i = 0; i < std::min(max_lines, s.inputs.size()); ++i)
        out += fmt::format("| {} | {} |\n", code(s.inputs[i].pointer), markdown_cell(change_text(s.inputs[i])));
      if (s.inputs.size() > max_lines) out += fmt::format("| and {} more | |\n", s.inputs.size() - max_lines);
      out += '\n';
    }
  }
  for (const std::string& n : c.only_in_a) out += fmt::format("- only in A: {}\n", markdown_cell(n));
  for (const std::string& n : c.only_in_b) out += fmt::format("- only in B: {}\n", markdown_cell(n));
  if (!c.only_in_a.empty() || !c.only_in_b.empty()) out += '\n';
  if (!c.gates.empty()) {
    out += "| gate | scenario | result | why |\n|:--|:--|:--|:--|\n";
    for (const gate_outcome& g : c.gates)
      out += fmt::format("| {} | {} | {} | {} |\n", code(g.rule.text), markdown_cell(g.on.scenario),
                         g.failed ? "**failed**" : "passed", markdown_cell(g.reason));
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::span<const std::string> compare_format_names() {
  static const std::array<std::string, 5> names = {"table", "json", "markdown", "junit", "github"};
  return names;
}

std::string render(const comparison& c, compare_format format) {
  switch (format) {
    case compare_format::table:
      return compare_table(c);
    case compare_format::json:
      return compare_json(c);
    case compare_format::markdown:
      return compare_markdown(c);
    case compare_format::junit:
      return compare_junit(c);
    case compare_format::github:
      return compare_github(c);
  }
  throw internal_error("unknown comparison format");
}

}  // namespace nvlsim::output
