// nvlsim explain
#include <functional>

#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/compute/compute.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/run/explain_scenario.hpp"
#include "nvlsim/scenario/inputs.hpp"

namespace nvlsim::cli {
namespace {

/// The rates of kernel tables, which no step time has touched, beside those of a step; of GPUs that were measured.
void add_measured_kernels(explanation& e, const scenario& s, const data_folders& data) {
  diagnostics problems;
  const auto table = share_stack({.name = "tensorrt-llm-1.3-kernels"}, data, problems);
  problems.throw_if_any();
  const stack& kernels = table->file.content;
  if (!measured_on(kernels, s.platform.gpu)) return;
  const auto* step = std::get_if<training_workload>(&s.workload);
  const bool again = step && (step->recompute.full || step->recompute.core_attention);
  add_table_rates(e, s.platform.gpu, kernels_for(kernels, s.platform.gpu), again);
}

}  // namespace

exit_code execute(const explain_arguments& a) {
  const data_folders data = folders_under(data_root());
  const std::filesystem::path file = scenario_file(a.scenario);
  const auto overrides = parse_sets(a.sets);
  const scenario s = read_scenario(file, overrides, data);
  if (a.metric && a.metric->empty())
    throw input_error({{"", "", "METRIC is empty; omit it to explain the main metric", {}}});
  if (!a.only.empty() && !a.sensitivity)
    throw input_error({{"--only", "", "has no effect without --sensitivity", {}}});
  run_status status = run_status::ok;
  explanation e;
  {
    progress_line line("explain", s.name);
    e = explain_scenario(s, a.metric.value_or(""), status);
  }
  if (a.sensitivity) {
    const auto change = [&](const std::vector<override_option>& sets) {
      auto all = overrides;
      all.insert(all.end(), sets.begin(), sets.end());
      return load_scenario(file, all, data);
    };
    progress_line line("explain", "constants varied");
    add_sensitivity(e, change, std::ref(line), a.only);
  }
  if (std::holds_alternative<training_workload>(s.workload)) add_measured_kernels(e, s, data);
  print(a.format == "json" ? to_json(to_value(e)) : explanation_table(e));
  return status == run_status::infeasible ? exit_code::infeasible : exit_code::ok;
}

}  // namespace nvlsim::cli
