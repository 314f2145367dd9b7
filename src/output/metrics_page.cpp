// The table of metrics as text, JSON and Markdown.
#include <fmt/format.h>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

/// "no price is known" as a sentence of its own.
std::string null_sentence(const metric& m) {
  return m.null_when.empty() ? std::string() : fmt::format(" Null when {}.", m.null_when);
}

/// "s, distribution"
std::string unit_and_form(const metric& m) {
  std::string out(name(m.unit));
  if (m.is_distribution) out += out.empty() ? "distribution" : ", distribution";
  return out;
}

/// "s, smaller is better"
std::string unit_and_direction(const metric& m) {
  std::string out = unit_and_form(m);
  if (m.direction != better::neither)
    out += fmt::format("{}{} is better", out.empty() ? "" : ", ", name(m.direction));
  return out;
}

/// The scenarios that have it, where those are not all of the kind.
std::string condition(metric_kind k, const metric& m) {
  return m.needs == metric_needs::nothing ? std::string() : fmt::format(" Only in {}.", scenarios_with(k, m));
}

std::string entry(metric_kind k, const metric& m) {
  std::string out = fmt::format("  {:<37}{}\n", m.name, unit_and_direction(m));
  out.erase(out.find_last_not_of(" \n") + 1);
  out += '\n';
  const auto add = [&](const std::string& text) {
    for (const std::string& line : output::wrapped(text, output::table_columns - 6)) out += "      " + line + '\n';
  };
  add(std::string(m.meaning) + condition(k, m) + null_sentence(m));
  if (!m.formula.empty()) add(fmt::format("= {}", m.formula));
  return out;
}

value row_value(metric_kind k, const metric& m) {
  const auto text_or_null = [](std::string_view text) { return text.empty() ? value{} : value{text}; };
  value row{value::object{{"kind", name(k)}, {"name", m.name}}};
  row.set("unit", text_or_null(name(m.unit)));
  row.set("better", m.direction == better::neither ? value{} : value{name(m.direction)});
  row.set("distribution", m.is_distribution);
  row.set("scenarios", scenarios_with(k, m));
  row.set("meaning", m.meaning);
  row.set("formula", text_or_null(m.formula));
  row.set("null_when", text_or_null(m.null_when));
  return row;
}

}  // namespace

std::string metrics_text() {
  std::string out;
  for (const metric_kind k : metric_kinds) {
    out += fmt::format("{}metrics of {}\n", out.empty() ? "" : "\n", name(k));
    for (const metric& m : metrics_of(k)) out += entry(k, m);
  }
  return out;
}

value metrics_json() {
  value rows{value::array{}};
  for (const metric_kind k : metric_kinds)
    for (const metric& m : metrics_of(k)) rows.items()->push_back(row_value(k, m));
  return rows;
}

std::string metrics_markdown() {
  std::string out;
  for (const metric_kind k : metric_kinds) {
    out += fmt::format(
        "{}### Metrics of {}\n\n| name | unit | better | meaning | product of |\n|---|---|---|---|---|\n",
        out.empty() ? "" : "\n", name(k));
    for (const metric& m : metrics_of(k))
      out += fmt::format("| `{}` | {} | {} | {}{}{} | {} |\n", m.name, unit_and_form(m),
                         m.direction == better::neither ? "" : name(m.direction), m.meaning, condition(k, m),
                         null_sentence(m), m.formula.empty() ? "" : fmt::format("`{}`", m.formula));
  }
  return out;
}

}  // namespace nvlsim
