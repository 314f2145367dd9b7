// nvlsim compare
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/analysis/compare.hpp"
#include "nvlsim/output/compare_report.hpp"
#include "nvlsim/run/isolate.hpp"

namespace nvlsim::cli {
namespace {

/// Reads result files and runs scenarios.
std::vector<result> results_of(std::vector<input_contents> files) {
  std::vector<result> out;
  for (input_contents& f : files) {
    if (f.to_run) out.push_back(run_isolated(*f.to_run));
    else std::move(f.results.begin(), f.results.end(), std::back_inserter(out));
  }
  return out;
}

exit_code code_of(const std::vector<result>& results) {
  const bool infeasible = std::any_of(results.begin(), results.end(),
                                      [](const result& r) { return r.status == run_status::infeasible; });
  return infeasible ? exit_code::infeasible : exit_code::ok;
}

}  // namespace

exit_code execute(const compare_arguments& a) {
  const data_folders data = folders_under(data_root());
  const auto sets = parse_sets(a.sets);
  const auto gates = analysis::parse_gates(a.rules);
  std::vector<input_contents> first, second;  // all inputs are read before anything runs
  diagnostics problems;
  gather(problems, [&] { first = read_inputs(a.a, sets, data); });
  gather(problems, [&] { second = read_inputs(a.b, sets, data); });
  if (a.rules.empty() && !a.may_vanish.empty())
    problems.add("--allow-missing", "", "has no effect without --fail-if");
  problems.throw_if_any();
  std::optional<progress_line> line(std::in_place, "compare");
  const auto before = results_of(std::move(first)), after = results_of(std::move(second));
  line.reset();
  const analysis::comparison c = analysis::compare(before, after, gates, a.may_vanish);
  tell_infeasible(before, "A");
  tell_infeasible(after, "B");
  const auto names = output::compare_format_names();
  print(output::render(
      c, static_cast<output::compare_format>(std::find(names.begin(), names.end(), a.format) - names.begin())));
  const exit_code gate = c.passed() ? exit_code::ok : exit_code::gate_failed;
  return std::max({gate, code_of(before), code_of(after)});
}

}  // namespace nvlsim::cli
