// JUnit XML and GitHub workflow commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/output/compare_report.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim::output {
namespace {

using analysis::comparison;
using analysis::gate_outcome;

std::string both_values(const analysis::metric_change& m) {
  const auto text = [&](const std::optional<double>& d) { return d ? analysis::with_unit(m.metric, *d) : "none"; };
  return fmt::format("A = {}, B = {}", text(m.a), text(m.b));
}

std::string message(const gate_outcome& g, const comparison& c) {
  const std::string moved = g.failed ? changed_inputs_text(c, g.on.scenario, 5) : "";
  const std::string values = g.on.a || g.on.b ? fmt::format(" ({})", both_values(g.on)) : "";
  return fmt::format("{}: {}{}{}{}", g.rule.text, g.reason, values, moved.empty() ? "" : "; inputs: ", moved);
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

/// Workflow commands of one kind. The host shows ten of a kind in a step and drops the others without a word, so
/// the tenth says how many more there are. [docs.github.com: workflow commands, annotations]
class annotations {
 public:
  explicit annotations(std::string_view kind) : kind_(kind) {}
  void add(std::string_view title, std::string_view text) { list_.emplace_back(title, text); }
  std::string text() const {
    constexpr std::size_t most = 10, longest = 4000;  // characters
    std::string out;
    const std::size_t whole = list_.size() > most ? most - 1 : list_.size();
    const auto command = [&](std::string_view title, std::string_view message) {
      out += fmt::format("::{} title={}::{}\n", kind_, github_escaped(one_line(title, 200), true),
                         github_escaped(one_line(message, longest), false));
    };
    for (std::size_t i = 0; i < whole; ++i) command(list_[i].first, list_[i].second);
    if (whole < list_.size())
      command("nvlsim",
              fmt::format("and {} more of these; the summary and the JUnit file have all", list_.size() - whole));
    return out;
  }

 private:
  std::string_view kind_;
  std::vector<std::pair<std::string, std::string>> list_;
};

/// Inputs that changed in scenarios without a failed gate, which tell theirs themselves.
std::vector<std::pair<std::string, std::string>> quiet_changes(const comparison& c) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const analysis::scenario_pair& s : c.scenarios) {
    const bool told = std::any_of(c.gates.begin(), c.gates.end(),
                                  [&](const gate_outcome& g) { return g.failed && g.on.scenario == s.scenario; });
    if (!told && !s.inputs.empty()) out.emplace_back(s.scenario, changed_inputs_text(c, s.scenario, 5));
  }
  return out;
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
  for (const auto& [scenario, inputs] : quiet_changes(c))
    unmatched += fmt::format("{}: inputs: {}\n", scenario, inputs);
  for (const std::string& r : c.remarks) unmatched += fmt::format("note: {}\n", r);
  if (!unmatched.empty()) unmatched = fmt::format("    <system-out>{}</system-out>\n", xml_escaped(unmatched));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites tests=\"{0}\" failures=\"{1}\">\n"
      "  <testsuite name=\"nvlsim compare\" tests=\"{0}\" failures=\"{1}\" errors=\"0\" skipped=\"0\">\n"
      "{2}{3}  </testsuite>\n</testsuites>\n",
      tests, failures, cases, unmatched);
}

std::string compare_github(const comparison& c) {
  annotations errors("error"), warnings("warning"), notices("notice");
  for (const analysis::scenario_pair& p : c.scenarios)
    if (!p.reasons.empty()) errors.add("nvlsim did not run", p.scenario + reasons_of(p));
  for (const gate_outcome& g : c.gates)
    if (g.failed) errors.add("nvlsim gate failed", fmt::format("{}: {}", scenario_of(g.on), message(g, c)));
  for (const std::string& n : c.only_in_a) warnings.add("nvlsim unmatched", "only in A: " + n);
  for (const std::string& n : c.only_in_b) warnings.add("nvlsim unmatched", "only in B: " + n);
  for (const std::string& r : c.remarks) warnings.add("nvlsim baseline", r);
  const auto passed = std::count_if(c.gates.begin(), c.gates.end(), [](const auto& g) { return !g.failed; });
  if (passed > 0) notices.add("nvlsim", fmt::format("{} of {} gates passed", passed, c.gates.size()));
  for (const auto& [scenario, inputs] : quiet_changes(c))
    notices.add("nvlsim inputs changed", fmt::format("{}: {}", scenario, inputs));
  if (c.gates.empty())
    for (const analysis::metric_change& m : c.rows)
      notices.add(fmt::format("nvlsim {}", m.metric),
                  fmt::format("{}: {}{}", m.scenario, both_values(m),
                              m.change ? fmt::format(", {}", percent_change(*m.change)) : ""));
  return errors.text() + warnings.text() + notices.text();
}

}  // namespace nvlsim::output
