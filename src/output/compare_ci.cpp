// JUnit XML and GitHub workflow commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nvlsim/output/compare_report.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim::output {
namespace {

using analysis::comparison;
using analysis::gate_outcome;

std::string both_values(const analysis::metric_change& m) {
  const auto text = [](const std::optional<double>& d) { return d ? number_text(*d) : "none"; };
  return fmt::format("A = {}, B = {}", text(m.a), text(m.b));
}

std::string message(const gate_outcome& g, const comparison& c) {
  const std::string moved = g.failed ? changed_inputs_text(c, g.on.scenario, 5) : "";
  return fmt::format("{}: {} ({}){}{}", g.rule.text, g.reason, both_values(g.on),
                     moved.empty() ? "" : "; inputs: ", moved);
}

std::string reasons_of(const analysis::scenario_pair& p) {
  return p.reasons.empty() ? std::string() : fmt::format(": {}", fmt::join(p.reasons, "; "));
}

std::string scenario_of(const analysis::metric_change& m) { return m.scenario.empty() ? "nvlsim" : m.scenario; }

/// Escapes the message of a workflow command. Property values also need their separators escaped.
std::string github_escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '%':
        out += "%25";
        break;
      case '\r':
        out += "%0D";
        break;
      case '\n':
        out += "%0A";
        break;
      case ':':
        out += property ? "%3A" : ":";
        break;
      case ',':
        out += property ? "%2C" : ",";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string command(std::string_view kind, std::string_view title, std::string_view text) {
  return fmt::format("::{} title={}::{}\n", kind, github_escaped(title, true), github_escaped(text, false));
}

}  // namespace

std::string compare_junit(const comparison& c) {
  std::string cases;
  for (const gate_outcome& g : c.gates) {
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_escaped(scenario_of(g.on)),
                         xml_escaped(g.rule.text));
    if (g.failed)
      cases += fmt::format(">\n      <failure message=\"{}\"/>\n    </testcase>\n", xml_escaped(message(g, c)));
    else cases += "/>\n";
  }
  if (c.gates.empty())
    for (const analysis::metric_change& m : c.rows)
      cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"/>\n", xml_escaped(m.scenario),
                           xml_escaped(m.metric));
  std::size_t tests = c.gates.empty() ? c.rows.size() : c.gates.size();
  auto failures = std::count_if(c.gates.begin(), c.gates.end(), [](const auto& g) { return g.failed; });
  for (const analysis::scenario_pair& p : c.scenarios) {
    if (p.a != run_status::infeasible && p.b != run_status::infeasible) continue;
    ++tests, ++failures;
    cases += fmt::format(
        "    <testcase classname=\"{}\" name=\"status\">\n      <failure message=\"{} is infeasible{}\"/>\n    "
        "</testcase>\n",
        xml_escaped(p.scenario), p.b == run_status::infeasible ? "B" : "A", xml_escaped(reasons_of(p)));
  }
  std::string unmatched;
  for (const std::string& n : c.only_in_a) unmatched += fmt::format("only in A: {}\n", n);
  for (const std::string& n : c.only_in_b) unmatched += fmt::format("only in B: {}\n", n);
  if (!unmatched.empty()) unmatched = fmt::format("    <system-out>{}</system-out>\n", xml_escaped(unmatched));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites tests=\"{0}\" failures=\"{1}\">\n"
      "  <testsuite name=\"nvlsim compare\" tests=\"{0}\" failures=\"{1}\" errors=\"0\" skipped=\"0\">\n"
      "{2}{3}  </testsuite>\n</testsuites>\n",
      tests, failures, cases, unmatched);
}

std::string compare_github(const comparison& c) {
  std::string out;
  for (const gate_outcome& g : c.gates)
    out +=
        command(g.failed ? "error" : "notice", fmt::format("nvlsim {}", g.failed ? "gate failed" : "gate passed"),
                fmt::format("{}: {}", scenario_of(g.on), message(g, c)));
  if (c.gates.empty())
    for (const analysis::metric_change& m : c.rows)
      out += command("notice", fmt::format("nvlsim {}", m.metric),
                     fmt::format("{}: {}{}", m.scenario, both_values(m),
                                 m.change ? fmt::format(", {}", percent_change(*m.change)) : ""));
  for (const analysis::scenario_pair& p : c.scenarios)
    if (!p.reasons.empty())
      out += command("error", "nvlsim did not run", fmt::format("{}{}", p.scenario, reasons_of(p)));
  for (const std::string& n : c.only_in_a) out += command("warning", "nvlsim unmatched", "only in A: " + n);
  for (const std::string& n : c.only_in_b) out += command("warning", "nvlsim unmatched", "only in B: " + n);
  return out;
}

}  // namespace nvlsim::output
