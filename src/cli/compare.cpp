// nvlsim compare
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "analysis/compare.hpp"
#include "cli/commands.hpp"
#include "cli/support.hpp"
#include "config/document.hpp"
#include "output/compare_report.hpp"
#include "study/isolate.hpp"

namespace nvlsim::cli {
namespace {

/// A result file as it is, a scenario after running it.
std::vector<result> results_of_file(const std::filesystem::path& file, const std::vector<override_option>& sets,
                                    const data_folders& data) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw io_error(fmt::format("{}: cannot be read", file.string()));
  if (holds_results(config::parse_scalar(text.str()))) return read_results(text.str(), file.string());
  return {run_isolated(load_scenario(file, sets, data))};
}

bool is_trace(const std::filesystem::path& file) { return file.filename().string().ends_with(".trace.json"); }

std::vector<result> results_of(const std::string& what, const std::vector<override_option>& sets, const data_folders& data) {
  if (!std::filesystem::is_directory(what)) return results_of_file(scenario_file(what), sets, data);
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(what))
    if (e.path().extension() == ".json" && !is_trace(e.path())) files.push_back(e.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw input_error({{what, "", "a folder without results or scenarios (*.json)", {}}});
  std::vector<result> out;
  for (const auto& f : files)
    for (result& r : results_of_file(f, sets, data)) out.push_back(std::move(r));
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
