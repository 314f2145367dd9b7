// nvlsim report
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/support.hpp"
#include "nvlsim/run.hpp"
#include "output/report_page.hpp"
#include "study/explain_scenario.hpp"

namespace nvlsim::cli {
namespace {

/// Runs a scenario and takes it apart.
void add_scenario(output::report_contents& out, const std::filesystem::path& file,
                  const std::vector<override_option>& sets, const data_folders& data, bool sensitive) {
  const scenario s = load_scenario(file, sets, data);
  const run_record run = run_scenario(s, {.explained = true, .engine = false});
  out.results.push_back(run.outcome);
  if (run.outcome.status == run_status::infeasible) return;
  out.timelines.push_back(output::draw_timeline(run));
  explanation e = explain_run(s, run, {});
  if (sensitive)
    add_sensitivity(
        e,
        [&](const std::vector<override_option>& more) {
          auto all = sets;
          all.insert(all.end(), more.begin(), more.end());
          return load_scenario(file, all, data);
        },
        [](std::size_t, std::size_t) {});
  out.explanations.push_back(std::move(e));
}

}  // namespace

exit_code execute(const report_arguments& a) {
  const data_folders data = folders_under(data_root());
  const auto sets = parse_sets(a.sets);
  output::report_contents contents;
  exit_code worst = exit_code::ok;
  for (const std::string& what : a.inputs)
    for (const input_file& f : input_files(what)) {
      if (f.results.empty()) add_scenario(contents, f.path, sets, data, a.sensitivity);
      else contents.results.insert(contents.results.end(), f.results.begin(), f.results.end());
    }
  for (const result& r : contents.results)
    if (r.status == run_status::infeasible) worst = exit_code::infeasible;
  write_file(a.output, output::report_page(contents));
  return worst;
}

}  // namespace nvlsim::cli
