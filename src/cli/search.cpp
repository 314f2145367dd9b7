// nvlsim search
#include <algorithm>
#include <functional>

#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/search/search.hpp"
#include "nvlsim/units/in_parallel.hpp"

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

/// What a scenario's inputs come to with these overrides. Empty if they are none.
std::string digest_with(const std::filesystem::path& file, const std::vector<override_option>& sets,
                        const data_folders& data) {
  try {
    const scenario s = load_scenario(file, sets, data);
    const value* digest = s.inputs.find("digest");
    return digest && digest->string() ? *digest->string() : std::string();
  } catch (const input_error&) {
    return {};
  }
}

/// The command that runs the best layout: the search's own overrides, and of the layout's settings those without
/// which the inputs would be others. Its words are apart by blanks, its options by line breaks.
std::string command_for(const search_arguments& a, const search_result& r, const data_folders& data) {
  const std::filesystem::path file = scenario_file(a.scenario);
  std::vector<override_option> sets = parse_sets(a.sets);
  const std::size_t own = sets.size();
  for (auto& [pointer, text] : settings_of(r, r.best.front())) sets.push_back({pointer, text});
  const std::string wanted = digest_with(file, sets, data);
  for (std::size_t i = sets.size(); i-- > own && !wanted.empty();) {
    std::vector<override_option> without = sets;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    if (digest_with(file, without, data) == wanted) sets = std::move(without);
  }
  std::string out = "nvlsim run " + output::shell_word(a.scenario);
  for (const override_option& o : sets) out += "\n--set " + output::shell_word(o.pointer + "=" + o.text);
  return out;
}

}  // namespace

exit_code execute(const search_arguments& a) {
  const data_folders data = folders_under(data_root());
  const scenario s = read_scenario(scenario_file(a.scenario), parse_sets(a.sets), data);
  search_options o;
  o.gpus = a.gpus;
  o.objective = a.objective;
  o.constraints = a.constraints;
  o.pareto = a.pareto;
  for (const std::string& text : a.only) o.restrictions.push_back(restriction_of(text));
  o.top = a.top;
  o.jobs = a.jobs > 0 ? a.jobs : static_cast<int>(processors());
  o.exhaustive = a.exhaustive;
  o.stop = interrupted;
  catch_termination();
  search_result r;
  {
    // Bounds leave most layouts of training out, and those that may be best come first.
    const bool even = a.exhaustive || !std::holds_alternative<training_workload>(s.workload);
    progress_line line("search", "layouts tried or left out", even);
    o.report = std::ref(line);
    r = search_layouts(s, o);
  }
  const std::string command = r.best.empty() || a.format == "csv" ? "" : command_for(a, r, data);
  print(a.format == "json"  ? to_json(search_json(r, command))
        : a.format == "csv" ? search_csv(r)
                            : search_text(r, command));
  if (interrupted()) return exit_code::interrupted;
  return r.found > 0 ? exit_code::ok : exit_code::infeasible;
}

}  // namespace nvlsim::cli
