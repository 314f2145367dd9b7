#include "nvlsim/measurements/row_scenarios.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/measurements/row_runs.hpp"
#include "nvlsim/scenario/write_workload.hpp"

namespace nvlsim {
namespace {

/// Which metrics of the run are the row's columns: "tpot_ms is 1000 times tpot_s/mean".
std::string description_of(const inference_row& r) {
  std::vector<std::string> columns;
  for (const row_figure& f : figures_of(r))
    columns.push_back(fmt::format("{} is {:.12g} times {}{}{}", f.column, f.factor, f.metric,
                                  f.statistic.empty() ? "" : "/", f.statistic));
  return fmt::format("{}: {}", r.record.table, fmt::join(columns, ", "));
}

value scenario_of(const inference_row& r) {
  const inference_workload w = workload_of(r);
  return value::object{{"schema", "nvlsim.scenario/1"},
                       {"name", r.record.id},
                       {"description", description_of(r)},
                       {"platform", value::object{{"use", r.hardware.name}, {"racks", r.hardware.racks}}},
                       {"stack", r.software->name},
                       {"model", r.record.model},
                       {"workload", write_inference_workload(w)},
                       {"simulation", value::object{{"seed", static_cast<std::int64_t>(w.seed)}}}};
}

}  // namespace

std::vector<row_scenario> row_scenarios(const std::filesystem::path& table, const data_folders& data) {
  const csv_table t = read_csv(table);
  for (const char* column : {"engine", "isl", "osl"})
    if (!t.has(column))
      throw input_error({{table.string(), "", "--write-scenarios supports serving tables only", {}}});
  input_cache inputs(data);
  std::vector<row_scenario> out;
  for (const csv_row& row : t.rows) {
    const inference_row r = read_inference_row(row, t.stem, inputs);
    if (r.record.status == record_status::ok) out.push_back({r.record.id, scenario_of(r), figures_of(r)});
  }
  return out;
}

}  // namespace nvlsim
