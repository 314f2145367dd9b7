// nvlsim explain
#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>

#include "cli/commands.hpp"
#include "cli/support.hpp"
#include "nvlsim/output.hpp"
#include "study/explain_scenario.hpp"

namespace nvlsim::cli {
namespace {

void show_progress(std::size_t done, std::size_t all) {
  if (::isatty(STDERR_FILENO) == 0) return;
  if (done == all) fmt::print(stderr, "\r\033[K");
  else fmt::print(stderr, "\rexplain: {} of {} constants moved", done, all);
  std::fflush(stderr);
}

}  // namespace

exit_code execute(const explain_arguments& a) {
  const data_folders data = folders_under(data_root());
  const std::filesystem::path file = scenario_file(a.scenario);
  const auto overrides = parse_sets(a.sets);
  const scenario s = load_scenario(file, overrides, data);
  run_status status = run_status::ok;
  explanation e = explain_scenario(s, a.metric, status);
  if (a.sensitivity) {
    const auto change = [&](const std::vector<override_option>& sets) {
      auto all = overrides;
      all.insert(all.end(), sets.begin(), sets.end());
      return load_scenario(file, all, data);
    };
    add_sensitivity(e, change, show_progress);
  }
  print(a.format == "json" ? to_json(to_value(e)) : explanation_table(e));
  return status == run_status::infeasible ? exit_code::infeasible : exit_code::ok;
}

}  // namespace nvlsim::cli
