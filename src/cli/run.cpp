// nvlsim run
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/inputs.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/config/read_file.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/planner/run_draft.hpp"
#include "nvlsim/run/child.hpp"
#include "nvlsim/run/isolate.hpp"
#include "nvlsim/run/queue_jobs.hpp"
#include "nvlsim/scenario/parse_scenario.hpp"
#include "nvlsim/search/highest_load.hpp"

namespace nvlsim::cli {
namespace {

exit_code code_of(run_status s) {
  switch (s) {
    case run_status::ok:
    case run_status::saturated:
      return exit_code::ok;
    case run_status::infeasible:
      return exit_code::infeasible;
    case run_status::error:
      return exit_code::internal;
  }
  return exit_code::internal;
}

result_format format_of(const std::string& name) {
  const auto names = result_format_names();
  return static_cast<result_format>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// Overrides from options come after those of --set.
std::vector<override_option> overrides_of(const run_arguments& a) {
  std::vector<override_option> out = parse_sets(a.sets);
  if (a.network) out.push_back({"/simulation/fidelity", *a.network});
  if (a.no_fold) out.push_back({"/simulation/fold", "false"});
  if (a.seed) out.push_back({"/simulation/seed", std::to_string(*a.seed)});
  return out;
}

/// Checks that no file that was read is overwritten and no file is written twice.
void check_outputs(const run_arguments& a, const std::vector<scenario>& scenarios) {
  namespace fs = std::filesystem;
  std::map<fs::path, std::string> known;
  diagnostics problems;
  std::error_code ec;
  const auto place = [&](const fs::path& file) { return fs::weakly_canonical(fs::absolute(file, ec), ec); };
  for (const scenario& s : scenarios) known.emplace(place(s.file), "the scenario");
  const auto take = [&](const char* option, const fs::path& file) {
    if (fs::exists(file, ec) && !fs::is_regular_file(file, ec)) return;  // a device or a pipe
    if (was_read(file) && !known.count(place(file)))
      problems.add(option, "", fmt::format("{} is read as an input and would be overwritten", file.string()));
    const auto [at, is_new] = known.emplace(place(file), option);
    if (!is_new)
      problems.add(option, "",
                   fmt::format("{} is already used for {} and would be overwritten", file.string(), at->second));
  };
  if (!a.output_folder.empty())
    for (const scenario& s : scenarios) take("-o", fs::path(a.output_folder) / (s.name + ".json"));
  if (!a.trace_file.empty()) take("--trace", a.trace_file);
  if (!a.requests_file.empty()) take("--requests", a.requests_file);
  if (!a.jobs_file.empty()) take("--jobs", a.jobs_file);
  problems.throw_if_any();
}

/// Runs one of several scenarios. Its failure does not affect the others.
template <class Do>
std::optional<result> one_of_many(const scenario& s, exit_code& worst, Do&& run) {
  result failed;
  const auto fail = [&](exit_code code, const std::exception& e) {
    fmt::print(stderr, "{}", for_stderr(fmt::format("nvlsim: {}: {}\n", s.name, e.what())));
    worst = std::max(worst, code);
    failed.name = s.name;
    failed.status = run_status::error;
    failed.inputs = s.inputs;
    failed.reasons = {e.what()};
  };
  try {
    std::optional<result> r = run();
    if (r) worst = std::max(worst, code_of(r->status));
    return r;
  } catch (const input_error& e) {
    fail(e.code(), e);
  } catch (const limit_error& e) {
    fail(exit_code::io, e);
  } catch (const internal_error& e) {
    fail(exit_code::internal, e);
  }
  return failed;
}

/// The result without what changes from run to run, so that a kept file changes only when the answer does.
result reproducible(result r) {
  if (auto* about = r.simulation.members())
    std::erase_if(*about,
                  [](const value::member& m) { return m.first == "wall_s" || m.first == "peak_memory_bytes"; });
  return r;
}

/// What a search for the highest load says of its result.
struct load_verdict {
  std::string note;
  std::string too_short;  ///< why the answer is only a lower bound, if it is

  void add_to(result& r) const {
    if (!note.empty()) r.notes.push_back(note);
    if (too_short.empty()) return;
    r.reasons.push_back(too_short);
    if (r.status == run_status::ok) r.status = run_status::saturated;
  }
};

/// What a scenario is read from: a file, or the text that options make.
struct run_input {
  std::string name;
  std::optional<value> text = {};

  scenario read(const std::vector<override_option>& overrides, const data_folders& data) const {
    return text ? parse_scenario(*text, "command line", overrides, data)
                : read_scenario(scenario_file(name), overrides, data);
  }
};

/// Whether --set gives what a note calls assumed: "precision mxfp8 (--precision)" and /workload/precision.
bool is_set(const std::string& assumed, const std::vector<override_option>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [&](const override_option& o) {
    std::string option = o.pointer.substr(o.pointer.rfind('/') + 1);
    std::replace(option.begin(), option.end(), '_', '-');
    return assumed.ends_with(fmt::format("(--{})", option));
  });
}

std::vector<run_input> inputs_of(const run_arguments& a, const data_folders& data) {
  std::vector<run_input> out;
  for (const std::string& name : a.scenarios) out.push_back({name});
  if (a.draft.empty()) return out;
  diagnostics problems;
  if (!out.empty())
    problems.add(a.draft.front().first, "",
                 fmt::format("defines a new scenario and cannot be combined with {}; change a scenario with --set",
                             out.front().name));
  problems.throw_if_any();
  std::vector<std::string> assumed;
  value text = draft_run(a.draft, data, assumed, problems);
  problems.throw_if_any();
  const std::vector<override_option> sets = overrides_of(a);
  for (const std::string& what : assumed)
    if (!is_set(what, sets)) note(fmt::format("nvlsim: assumed: {}", what));
  out.push_back({"command line", std::move(text)});
  return out;
}

/// Reloads the scenario at the highest load that meets its objective. Returns a result if there is none.
std::optional<result> raise_load(scenario& s, const run_input& from, std::vector<override_option> overrides,
                                 const data_folders& data, load_verdict& verdict) {
  highest_load h;
  {
    progress_line line("run", "loads tried");
    h = find_highest_load(s, std::ref(line));
  }
  if (!h.found) {
    result none;
    none.name = s.name;
    none.inputs = s.inputs;
    none.status = run_status::infeasible;
    none.reasons = {
        fmt::format("no load meets the objective ({} runs); at the lowest load: {}", h.runs, h.missed)};
    return none;
  }
  const std::string load = "/workload/load/";
  const auto set = [&](std::string_view key, std::string text) {
    overrides.push_back({load + std::string(key), std::move(text)});
  };
  const auto spelled = [&](const char* usual, const char* other) {
    return s.inputs.at_pointer(fmt::format("/scenario{}{}", load, other)) ? other : usual;
  };
  const char* unit = "clients";
  if (h.workload.load == load_kind::closed_loop) {
    set(spelled("concurrency", "max_concurrency"), std::to_string(h.workload.concurrency));
    set(spelled("requests", "num_prompts"), std::to_string(h.workload.requests));
  } else if (h.workload.load == load_kind::open_loop || !h.workload.replay->timed) {
    set(spelled("requests_per_s", "request_rate"), fmt::format("{}", h.load));
    if (h.workload.load == load_kind::open_loop)
      set(spelled("requests", "num_prompts"), std::to_string(h.workload.requests));
    unit = "arrivals/s";
  } else {
    set("rate_scale", fmt::format("{}", h.load));
    unit = "times the trace's rate";
  }
  std::string& note = verdict.note;
  note = h.bounded ? fmt::format(
                         "highest load that meets the objective: {:.6g} {}, within 0.2 % or one client ({} runs)",
                         h.load, unit, h.runs)
                   : fmt::format("every load up to {:.6g} {} meets the objective ({} runs)", h.load, unit, h.runs);
  if (h.bounded && h.short_run)
    verdict.too_short =
        "the run is too short to find the limit: slightly more load also meets the objective, but the queue is "
        "still growing; use more requests";
  if (h.few())
    note +=
        fmt::format("; only {:.0f} requests were measured, and a reliable result needs {:.0f}; use more requests",
                    h.counted, h.enough());
  s = from.read(overrides, data);
  return std::nullopt;
}

void check_names(const std::vector<scenario>& scenarios) {
  std::set<std::string> seen;
  diagnostics problems;
  for (const scenario& s : scenarios) {
    if (!seen.insert(s.name).second)
      problems.add(
          "", "",
          fmt::format("two scenarios are called \"{}\"; their results would overwrite each other", s.name));
    if (s.name.empty() || s.name.find('/') != std::string::npos || s.name.find('\0') != std::string::npos)
      problems.add("", "", fmt::format("scenario name \"{}\" is not a valid file name", s.name));
  }
  problems.throw_if_any();
}

}  // namespace

exit_code execute(const run_arguments& a) {
  const data_folders data = folders_under(data_root());
  const auto overrides = overrides_of(a);
  const std::vector<run_input> inputs = inputs_of(a, data);
  if (!a.trace_file.empty() && inputs.size() != 1)
    throw input_error({{"", "", "--trace needs exactly one scenario", {}}});
  if (!a.requests_file.empty() && inputs.size() != 1)
    throw input_error({{"", "", "--requests needs exactly one scenario", {}}});
  if (!a.jobs_file.empty() && inputs.size() != 1)
    throw input_error({{"", "", "--jobs needs exactly one scenario", {}}});
  std::vector<scenario> scenarios;
  diagnostics problems;
  for (const run_input& i : inputs) gather(problems, [&] { scenarios.push_back(i.read(overrides, data)); });
  problems.throw_if_any();
  if (!a.requests_file.empty() && !std::holds_alternative<inference_workload>(scenarios.front().workload))
    throw input_error(
        {{"", "", fmt::format("--requests: {} is not a serving scenario", scenarios.front().name), {}}});
  if (!a.jobs_file.empty() && !has_queue(scenarios.front()))
    throw input_error({{"", "", fmt::format("--jobs: {} has no queue of jobs", scenarios.front().name), {}}});
  if (!a.output_folder.empty()) {
    check_names(scenarios);
    std::error_code ec;
    std::filesystem::create_directories(a.output_folder, ec);
    if (ec) throw io_error(fmt::format("{}: cannot be created ({})", a.output_folder, ec.message()));
  }
  check_outputs(a, scenarios);
  trace_options trace;
  trace.classes = a.trace_classes;
  trace.detail = a.trace_detail == "layers" ? trace_detail::layers : trace_detail::operations;

  if (scenarios.size() > 1) catch_interrupts();  // a single scenario has nothing to finish early
  exit_code worst = exit_code::ok;
  std::vector<result> results;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    scenario& s = scenarios[i];
    if (interrupted()) break;
    load_verdict verdict;
    std::optional<result> none;
    const bool alone = scenarios.size() == 1;
    const auto raise = [&] { return raise_load(s, inputs[i], overrides, data, verdict); };
    if (a.highest_load) none = alone ? raise() : one_of_many(s, worst, raise);
    if (none) {
      results.push_back(*std::move(none));
      if (alone) worst = code_of(results.back().status);
    } else if (progress_line line("run", s.name); !alone) {
      results.push_back(*one_of_many(s, worst, [&] { return std::optional(run_isolated(s)); }));
    } else {
      results.push_back(run_isolated(s, a.trace_file, trace, a.requests_file, a.jobs_file));
      worst = code_of(results.back().status);
    }
    verdict.add_to(results.back());
    if (!a.output_folder.empty())
      write_file(std::filesystem::path(a.output_folder) / (s.name + ".json"),
                 to_json(to_value(reproducible(results.back()))));
  }
  if (results.size() > 1 || !a.output_folder.empty()) tell_infeasible(results);
  print(render(results, format_of(a.format)));
  return interrupted() ? exit_code::interrupted : worst;
}

}  // namespace nvlsim::cli
