#include "nvlsim/measurements/row_scenarios.hpp"

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/measurements/row_runs.hpp"
#include "nvlsim/scenario/write_workload.hpp"

namespace nvlsim {
namespace {

value scenario_of(const inference_row& r) {
  const inference_workload w = workload_of(r);
  return value::object{{"schema", "nvlsim.scenario/1"},
                       {"name", r.record.id},
                       {"platform", value::object{{"use", r.hardware.name}, {"racks", r.hardware.racks}}},
                       {"stack", r.software->name},
                       {"model", r.record.model},
                       {"workload", write_inference_workload(w)},
                       {"simulation", value::object{{"seed", static_cast<std::int64_t>(w.seed)}}}};
}

}  // namespace

std::vector<std::pair<std::string, value>> row_scenarios(const std::filesystem::path& table,
                                                         const data_folders& data) {
  const csv_table t = read_csv(table);
  for (const char* column : {"engine", "isl", "osl"})
    if (!t.has(column))
      throw input_error({{table.string(), "", "--write-scenarios supports serving tables only", {}}});
  input_cache inputs(data);
  std::vector<std::pair<std::string, value>> out;
  for (const csv_row& row : t.rows) {
    const inference_row r = read_inference_row(row, t.stem, inputs);
    if (r.record.status == record_status::ok) out.emplace_back(r.record.id, scenario_of(r));
  }
  return out;
}

}  // namespace nvlsim
