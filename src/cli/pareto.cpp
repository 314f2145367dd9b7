// nvlsim pareto
#include <functional>

#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/search/pareto.hpp"

namespace nvlsim::cli {

exit_code execute(const pareto_arguments& a) {
  const scenario s = read_scenario(scenario_file(a.scenario), parse_sets(a.sets), folders_under(data_root()));
  pareto_study p;
  {
    progress_line line("pareto", "runs");
    p = study_pareto(s, a.gpus, a.clients, std::ref(line));
  }
  print(a.format == "json" ? pareto_json(p) : a.format == "svg" ? pareto_svg(p) : pareto_table(p));
  return p.points.empty() ? exit_code::infeasible : exit_code::ok;
}

}  // namespace nvlsim::cli
