// nvlsim sweep plan, run, merge, submit
#include "nvlsim/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <tuple>

#include "cli/commands.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/sweep_table.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/sweep/sweep_store.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim::cli {
namespace {

/// A number from an environment variable. Empty if unset.
std::optional<std::int64_t> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return std::nullopt;
  const std::string_view all = text;
  std::int64_t n = 0;
  const auto [end, status] = std::from_chars(all.data(), all.data() + all.size(), n);
  if (status != std::errc() || end != all.data() + all.size())
    throw input_error({{variable, "", fmt::format("\"{}\" is not a number", all), {}}});
  return n;
}

/// The requested shard and number of shards, else those of the scheduler, else all points.
std::pair<std::int64_t, std::int64_t> shard_of(const sweep_arguments& a) {
  std::optional<std::int64_t> index = a.index, of = a.of;
  const std::optional<std::int64_t> slurm = number_in("SLURM_ARRAY_TASK_ID"),
                                    kubernetes = number_in("JOB_COMPLETION_INDEX");
  if (!index && slurm) index = *slurm - number_in("SLURM_ARRAY_TASK_MIN").value_or(0);
  if (!of && slurm) of = number_in("SLURM_ARRAY_TASK_COUNT");
  if (!index && kubernetes) index = kubernetes;
  if (index && !of) throw input_error({{"--of", "", "the number of shards is missing", {}}});
  if (!index && of && *of > 1)
    throw input_error({{"--index", "", fmt::format("the index of the shard (of {}) is missing", *of), {}}});
  if (index && (*index < 0 || *index >= *of))
    throw input_error({{"--index", "", fmt::format("{} is not in 0..{}", *index, *of - 1), {}}});
  return {index.value_or(0), of.value_or(1)};
}

void print_counts(const sweep_arguments& a, value counts, const std::string& text, const sweep_reasons& reasons) {
  value all{value::object{}};
  for (const auto& [what, n] : reasons) all.set(what, n);
  counts.set("reasons", std::move(all));
  print(a.format == "json" ? to_json(counts) : text);
}

/// Reasons with their numbers of points, most frequent first.
std::string reasons_text(const sweep_reasons& reasons) {
  constexpr std::size_t max = 8;
  std::vector<std::pair<std::int64_t, std::string>> lines;
  for (const auto& [what, n] : reasons) lines.emplace_back(n, what);
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (std::size_t i = 0; i < std::min(max, lines.size()); ++i) {
    std::string mark = fmt::format("{:>8}  ", lines[i].first);
    for (const std::string& line : output::wrapped(lines[i].second, output::table_columns - mark.size())) {
      out += mark + line + '\n';
      mark.assign(mark.size(), ' ');
    }
  }
  if (lines.size() > max)
    out += fmt::format("          and {} other reasons; see the merged results\n", lines.size() - max);
  return out;
}

exit_code plan_sweep(const sweep_arguments& a) {
  sweep_plan p;
  {
    progress_line line("sweep", "points");
    const auto named_by_file = [&](const std::string& name) {
      try {
        return scenario_file(name);
      } catch (const input_error& e) {
        throw input_error({{a.target, "/scenario", e.problems().front().what, e.problems().front().hint}});
      } catch (const io_error& e) {
        throw input_error({{a.target, "/scenario", e.what(), {}, true}});
      }
    };
    p = write_sweep_plan(load_sweep(a.target), a.output, named_by_file, folders_under(data_root()),
                         std::ref(line));
  }
  std::int64_t wrong = 0;
  for (const auto& [what, n] : p.reasons) wrong += n;
  const auto all = static_cast<std::int64_t>(p.points.size());
  print_counts(a, value{value::object{{"folder", a.output}, {"points", all}}},
               fmt::format("{} points of {} in {}{}\n{}", all, p.name, a.output,
                           wrong > 0 ? fmt::format(", {} of them with invalid inputs", wrong) : "",
                           reasons_text(p.reasons)),
               p.reasons);
  if (wrong < all) return exit_code::ok;
  const std::vector<problem> why = {
      {a.target, "", fmt::format("all {} points have invalid inputs; {}", all, p.reasons.begin()->first), {}}};
  return report_failure(exit_code::bad_input, why.front().text(), why, false);
}

/// The table of a sweep folder, with an empty line before it. Empty for JSON, and for sweeps that no terminal
/// shows.
std::string table_of(const sweep_arguments& a, std::int64_t points) {
  constexpr std::int64_t most = 10'000;  // a larger plan takes seconds to read once more
  if (a.format == "json" || points > most) return {};
  const std::map<std::string, value> records = read_records(a.target);
  std::vector<sweep_row> rows;
  for (const sweep_point& p : read_sweep_plan(a.target).points) {
    const auto record = records.find(p.id);
    rows.push_back({p.index, p.set, record == records.end() ? value{} : record->second});
  }
  const std::string table = sweep_table(rows);
  return table.empty() ? table : "\n" + table;
}

exit_code merge(const sweep_arguments& a) {
  const sweep_merge m = merge_sweep(a.target);
  value counts{value::object{{"points", m.points},
                             {"ok", m.ok},
                             {"saturated", m.saturated},
                             {"infeasible", m.infeasible},
                             {"error", m.error},
                             {"missing", m.missing}}};
  counts.set("json_lines", m.json_lines.string());
  counts.set("csv", m.csv.string());
  print_counts(a, std::move(counts),
               fmt::format("{} points: {} ok, {} saturated, {} infeasible, {} failed, {} missing\n{}{}\n{}\n{}",
                           m.points, m.ok, m.saturated, m.infeasible, m.error, m.missing, reasons_text(m.reasons),
                           m.json_lines.string(), m.csv.string(), table_of(a, m.points)),
               m.reasons);
  return m.missing > 0 ? exit_code::gate_failed : exit_code::ok;
}

exit_code run(const sweep_arguments& a) {
  sweep_run_options o;
  std::tie(o.shard, o.shards) = shard_of(a);
  o.jobs = a.jobs > 0 ? a.jobs : static_cast<int>(processors());
  o.timeout_s = a.timeout_s;
  o.retry_errors = a.retry_errors;
  o.stop = interrupted;
  catch_termination();
  sweep_run_counts c;
  {
    progress_line line("sweep", "points");
    o.report = std::ref(line);
    c = run_sweep(a.target, o, scenario_file, folders_under(data_root()));
  }
  print_counts(
      a, value{value::object{{"points", c.points}, {"before", c.before}, {"run", c.run}, {"failed", c.failed}}},
      fmt::format("{} points: {} finished before, {} run, {} of them failed\n{}{}", c.points, c.before, c.run,
                  c.failed, reasons_text(c.reasons), table_of(a, c.points)),
      c.reasons);
  if (interrupted()) return exit_code::interrupted;
  if (a.merge) merge_sweep(a.target);  // every shard merges; the last one sees all records
  return exit_code::ok;
}

exit_code submit(const sweep_arguments& a) {
  submit_options o;
  o.program = std::filesystem::read_symlink("/proc/self/exe");
  o.shards = a.shards;
  o.jobs = std::max(1, a.jobs);
  o.at_once = a.at_once;
  o.extra = a.extra;
  o.image = a.image;
  o.claim = a.claim;
  o.mount = a.mount;
  o.dry_run = a.dry_run;
  print(a.action == sweep_action::submit_slurm ? submit_to_slurm(a.target, o) : write_kubernetes_job(a.target, o));
  return exit_code::ok;
}

}  // namespace

exit_code execute(const sweep_arguments& a) {
  switch (a.action) {
    case sweep_action::plan:
      return plan_sweep(a);
    case sweep_action::run:
      return run(a);
    case sweep_action::merge:
      return merge(a);
    case sweep_action::submit_slurm:
    case sweep_action::submit_kubernetes:
      return submit(a);
  }
  return exit_code::internal;
}

}  // namespace nvlsim::cli
