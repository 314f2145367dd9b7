#include "nvlsim/output/compare_report.hpp"
#include "nvlsim/output/output.hpp"

namespace nvlsim::output {
namespace {

value or_null(const std::optional<double>& d) { return d ? value{*d} : value{}; }

value names_of(const std::vector<std::string>& names) { return value{value::array(names.begin(), names.end())}; }

value::object change(const analysis::metric_change& m) {
  return {{"scenario", m.scenario},
          {"metric", m.metric},
          {"a", or_null(m.a)},
          {"b", or_null(m.b)},
          {"change", or_null(m.change)}};
}

}  // namespace

std::string compare_json(const analysis::comparison& c) {
  value::array scenarios, rows, gates;
  for (const analysis::scenario_pair& s : c.scenarios) {
    value::array inputs;
    for (const analysis::input_change& i : s.inputs)
      inputs.push_back(value::object{{"pointer", i.pointer}, {"a", i.a}, {"b", i.b}});
    scenarios.push_back(value::object{{"scenario", s.scenario},
                                      {"status_a", name(s.a)},
                                      {"status_b", name(s.b)},
                                      {"reasons", value::array(s.reasons.begin(), s.reasons.end())},
                                      {"inputs", std::move(inputs)}});
  }
  for (const analysis::metric_change& m : c.rows) rows.push_back(change(m));
  for (const analysis::gate_outcome& g : c.gates) {
    value::object gate = {{"rule", g.rule.text}, {"failed", g.failed}, {"reason", g.reason}};
    for (value::member& m : change(g.on)) gate.push_back(std::move(m));
    gates.push_back(std::move(gate));
  }
  return to_json(value{value::object{{"schema", "nvlsim.comparison/1"},
                                     {"passed", c.passed()},
                                     {"scenarios", std::move(scenarios)},
                                     {"rows", std::move(rows)},
                                     {"only_in_a", names_of(c.only_in_a)},
                                     {"only_in_b", names_of(c.only_in_b)},
                                     {"gates", std::move(gates)},
                                     {"remarks", names_of(c.remarks)}}});
}

}  // namespace nvlsim::output
