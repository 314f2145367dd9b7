// nvlsim compare
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/compare.hpp"
#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/support.hpp"
#include "output/compare_report.hpp"
#include "study/isolate.hpp"

namespace nvlsim::cli {
namespace {

/// Result files as they are, scenarios after running them.
std::vector<result> results_of(const std::string& what, const std::vector<override_option>& sets, const data_folders& data) {
  std::vector<result> out;
  for (input_file& f : input_files(what)) {
    if (f.results.empty()) out.push_back(run_isolated(read_scenario(f.path, sets, data)));
    else std::move(f.results.begin(), f.results.end(), std::back_inserter(out));
  }
  return out;
}

exit_code code_of(const std::vector<result>& results) {
  const bool infeasible = std::any_of(results.begin(), results.end(), [](const result& r) { return r.status == run_status::infeasible; });
  return infeasible ? exit_code::infeasible : exit_code::ok;
}

}  // namespace

exit_code execute(const compare_arguments& a) {
  const data_folders data = folders_under(data_root());
  const auto sets = parse_sets(a.sets);
  const auto gates = analysis::parse_gates(a.rules);
  const auto before = results_of(a.a, sets, data), after = results_of(a.b, sets, data);
  const analysis::comparison c = analysis::compare(before, after, gates);
  const auto names = output::compare_format_names();
  print(output::render(c, static_cast<output::compare_format>(std::find(names.begin(), names.end(), a.format) - names.begin())));
  const exit_code gate = c.passed() ? exit_code::ok : exit_code::gate_failed;
  return std::max({gate, code_of(before), code_of(after)});
}

}  // namespace nvlsim::cli
