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
    const std::string of = g.on.scenario.empty() ? "" : "  " + g.on.scenario;
    out += one_line(fmt::format("{}  {}{}", g.failed ? "FAIL" : "pass", g.rule.text, of), table_columns);
    out += '\n';
    for (const std::string& line : wrapped(g.reason, table_columns - 6)) out += "      " + line + '\n';
    const std::string moved = g.failed ? changed_inputs_text(c, g.on.scenario, max_words) : "";
    if (!moved.empty())
      for (const std::string& line : wrapped("inputs: " + moved, table_columns - 6)) out += "      " + line + '\n';
  }
  for (const std::string& r : c.remarks)
    for (const std::string& line : wrapped("note: " + r, table_columns)) out += line + '\n';
  if (!c.gates.empty()) {
    const auto failed = std::count_if(c.gates.begin(), c.gates.end(), [](const auto& g) { return g.failed; });
    out += fmt::format("{} of {} gates failed\n", failed, c.gates.size());
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

namespace {

bool cannot_run(run_status s) { return s == run_status::infeasible || s == run_status::error; }

/// "2 of 6 gates failed; 1 scenario cannot run".
std::string verdict(const comparison& c) {
  const auto count = [](const auto& list, auto&& is) { return std::count_if(list.begin(), list.end(), is); };
  const auto failed = count(c.gates, [](const gate_outcome& g) { return g.failed; });
  const auto broken = count(c.scenarios, [](const auto& s) { return cannot_run(s.a) || cannot_run(s.b); });
  std::string out = c.gates.empty() ? fmt::format("{} scenarios compared", c.scenarios.size())
                    : failed == 0   ? fmt::format("all {} gates passed", c.gates.size())
                                    : fmt::format("{} of {} gates failed", failed, c.gates.size());
  if (broken > 0) out += fmt::format("; {} scenario{} cannot run", broken, broken == 1 ? "" : "s");
  return out;
}

bool unchanged(const comparison& c, const analysis::scenario_pair& s) {
  bool same = s.inputs.empty() && s.a == s.b && s.reasons.empty();
  for_rows_of(c, s.scenario, [&](const metric_change& m) { same = same && m.a == m.b; });
  return same;
}

std::string markdown_section(const comparison& c, const analysis::scenario_pair& s) {
  std::string out = fmt::format("### {}{}\n\n", markdown_cell(s.scenario), status_text(s));
  for (const std::string& why : s.reasons) out += fmt::format("{}\n\n", markdown_cell(why));
  std::string rows;
  for_rows_of(c, s.scenario, [&](const metric_change& m) {
    rows += fmt::format("| {} | {} | {} | {} |\n", code(m.metric), shown(m.metric, m.a), shown(m.metric, m.b),
                        shown_change(m));
  });
  if (!rows.empty()) out += "| metric | A | B | change |\n|:--|--:|--:|--:|\n" + rows + '\n';
  if (s.inputs.empty()) return out;
  out += "| input that differs | change |\n|:--|:--|\n";
  for (std::size_t i = 0; i < std::min(max_lines, s.inputs.size()); ++i)
    out += fmt::format("| {} | {} |\n", code(s.inputs[i].pointer), markdown_cell(change_text(s.inputs[i])));
  if (s.inputs.size() > max_lines) out += fmt::format("| and {} more | |\n", s.inputs.size() - max_lines);
  return out + '\n';
}

/// Gates as a table, those that failed first.
std::string markdown_gates(const comparison& c) {
  if (c.gates.empty()) return {};
  std::string out = "| gate | scenario | result | why |\n|:--|:--|:--|:--|\n";
  for (const bool failed : {true, false})
    for (const gate_outcome& g : c.gates)
      if (g.failed == failed)
        out += fmt::format("| {} | {} | {} | {} |\n", code(g.rule.text), markdown_cell(g.on.scenario),
                           failed ? "**failed**" : "passed", markdown_cell(g.reason));
  return out + '\n';
}

}  // namespace

std::string compare_markdown(const comparison& c) {
  if (c.scenarios.empty() && c.gates.empty() && c.only_in_a.empty() && c.only_in_b.empty()) return {};
  std::string out = fmt::format("**nvlsim: {}**\n\n", verdict(c));
  for (const std::string& r : c.remarks) out += fmt::format("- note: {}\n", markdown_cell(r));
  for (const std::string& n : c.only_in_a) out += fmt::format("- only in A: {}\n", markdown_cell(n));
  for (const std::string& n : c.only_in_b) out += fmt::format("- only in B: {}\n", markdown_cell(n));
  if (!c.remarks.empty() || !c.only_in_a.empty() || !c.only_in_b.empty()) out += '\n';
  out += markdown_gates(c);
  std::string same;
  std::size_t folded = 0;
  for (const analysis::scenario_pair& s : c.scenarios) {
    if (!unchanged(c, s)) out += markdown_section(c, s);
    else same += markdown_section(c, s), ++folded;
  }
  if (folded > 0)
    out += fmt::format("<details><summary>{} scenario{} unchanged</summary>\n\n{}</details>\n", folded,
                       folded == 1 ? "" : "s", same);
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
