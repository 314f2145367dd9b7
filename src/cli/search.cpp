// nvlsim search
#include <algorithm>
#include <functional>
#include <thread>

#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/search/search.hpp"

namespace nvlsim::cli {
namespace {

/// Parses "tp=4,8", or "tp" for the scenario's own value.
search_restriction restriction_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  search_restriction r{text.substr(0, equals), {}};
  for (std::size_t at = equals; at != std::string::npos;) {
    const std::size_t end = text.find(',', at + 1);
    r.values.push_back(text.substr(at + 1, end == std::string::npos ? end : end - at - 1));
    at = end;
  }
  return r;
}

}  // namespace

exit_code execute(const search_arguments& a) {
  const scenario s = read_scenario(scenario_file(a.scenario), parse_sets(a.sets), folders_under(data_root()));
  search_options o;
  o.gpus = a.gpus;
  o.objective = a.objective;
  o.constraints = a.constraints;
  o.pareto = a.pareto;
  for (const std::string& text : a.only) o.restrictions.push_back(restriction_of(text));
  o.top = a.top;
  o.jobs = a.jobs > 0 ? a.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  o.exhaustive = a.exhaustive;
  o.stop = interrupted;
  catch_interrupts();
  search_result r;
  {
    progress_line line("search", "layouts");
    o.report = std::ref(line);
    r = search_layouts(s, o);
  }
  print(a.format == "json" ? to_json(search_json(r)) : a.format == "csv" ? search_csv(r) : search_text(r));
  if (interrupted()) return exit_code::interrupted;
  return r.found > 0 ? exit_code::ok : exit_code::infeasible;
}

}  // namespace nvlsim::cli
