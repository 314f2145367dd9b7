// nvlsim report
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/inputs.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/config/read_file.hpp"
#include "nvlsim/output/report_page.hpp"
#include "nvlsim/run/explain_scenario.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/sweep/sweep_store.hpp"

namespace nvlsim::cli {
namespace {

/// Reads the finished points of an `nvlsim sweep` folder.
output::report_sweep read_sweep(const std::filesystem::path& folder) {
  const sweep_plan plan = read_sweep_plan(folder);
  const auto records = read_records(folder);
  output::report_sweep out{plan.name, value{value::array{}}};
  for (const sweep_point& p : plan.points) {
    const auto record = records.find(p.id);
    if (record == records.end()) continue;
    value set{value::object{}}, point{value::object{}};
    for (const auto& [pointer, v] : p.set) set.set(pointer, v);
    point.set("set", std::move(set));
    for (const char* key : {"status", "reasons", "metrics"}) point.set(key, *record->second.find(key));
    out.points.items()->push_back(std::move(point));
  }
  detail(fmt::format("{}: {} of {} points have run", folder.string(), out.points.items()->size(),
                     plan.points.size()));
  return out;
}

/// Reads the output of `nvlsim sweep merge`, one point per line.
output::report_sweep read_merged(const std::filesystem::path& file) {
  output::report_sweep out{file.parent_path().filename().string(), value{value::array{}}};
  std::ifstream in(file);
  if (!in) throw io_error(fmt::format("{}: cannot be read", file.string()));
  note_read(file);
  diagnostics problems;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const value merged = config::parse_scalar(line);
    value point{value::object{}};
    for (const char* key : {"set", "status", "reasons", "metrics"})
      if (const value* v = merged.find(key)) point.set(key, *v);
    if (point.members()->size() == 4) out.points.items()->push_back(std::move(point));
    else problems.add(file.string(), "", fmt::format("line {} is not a point of a merged sweep", number));
  }
  if (number == 0) problems.add(file.string(), "", "the merged sweep has no points");
  problems.throw_if_any();
  return out;
}

/// Adds the JSON output of `nvlsim search` or `plan` to the page. False for other files.
bool add_study(const std::filesystem::path& file, output::report_contents& out) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in) note_read(file);
  value v = config::parse_scalar(text);
  const value* schema = v.find("schema");
  const std::string kind = schema && schema->string() ? *schema->string() : "";
  if (kind == "nvlsim.search/1") out.searches.push_back(std::move(v));
  else if (kind == "nvlsim.plan/1") out.plans.push_back(std::move(v));
  else return false;
  return true;
}

/// A unique name on the page: the second run with a name becomes "NAME (2)".
std::string name_on_page(const output::report_contents& c, const std::string& name) {
  const auto taken = [&](const std::string& n) {
    return std::any_of(c.results.begin(), c.results.end(), [&](const result& r) { return r.name == n; });
  };
  std::string out = name;
  for (int i = 2; taken(out); ++i) out = fmt::format("{} ({})", name, i);
  return out;
}

/// Where a scenario came from, to load it again with other values.
struct scenario_source {
  std::filesystem::path file;
  std::vector<override_option> sets;
  const data_folders& data;
};

/// Runs and explains a scenario.
void add_scenario(output::report_contents& out, const scenario_source& from, const scenario& s, bool sensitive) {
  run_record run = run_scenario(s, {.explained = true, .simulate = false});
  run.outcome.name = name_on_page(out, run.outcome.name);
  out.results.push_back(run.outcome);
  if (run.outcome.status == run_status::infeasible) return;
  out.timelines.push_back(output::timeline_of(run));
  explanation e = explain_run(s, run, {});
  e.scenario = run.outcome.name;
  if (sensitive)
    add_sensitivity(
        e,
        [&](const std::vector<override_option>& more) {
          auto all = from.sets;
          all.insert(all.end(), more.begin(), more.end());
          return load_scenario(from.file, all, from.data);
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
  std::vector<input_contents> inputs;
  const auto read = [&](const std::string& what) {
    if (std::filesystem::exists(std::filesystem::path(what) / "plan.json")) {
      contents.sweeps.push_back(read_sweep(what));
      return;
    }
    if (what.ends_with(".jsonl")) {
      contents.sweeps.push_back(read_merged(what));
      return;
    }
    if (what.ends_with(".json") && !std::filesystem::is_directory(what) && add_study(what, contents)) return;
    auto more = read_inputs(what, sets, data);
    std::move(more.begin(), more.end(), std::back_inserter(inputs));
  };
  diagnostics problems;
  for (const std::string& what : a.inputs) gather(problems, [&] { read(what); });
  if (was_read(a.output))
    problems.add("-o", "", fmt::format("{} is read as an input and would be overwritten", a.output));
  problems.throw_if_any();
  std::optional<progress_line> line(std::in_place, "report");
  for (const input_contents& i : inputs) {
    if (i.to_run) add_scenario(contents, {i.path, sets, data}, *i.to_run, a.sensitivity);
    else
      for (result r : i.results) {
        r.name = name_on_page(contents, r.name);
        contents.results.push_back(std::move(r));
      }
  }
  line.reset();
  for (const result& r : contents.results)
    if (r.status == run_status::infeasible) worst = exit_code::infeasible;
  write_file(a.output, output::report_page(contents));
  return worst;
}

}  // namespace nvlsim::cli
