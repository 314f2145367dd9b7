#include "nvlsim/measurements/row_scenarios.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "nvlsim/config/document.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/measurements/validate.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/parse_scenario.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

std::filesystem::path shipped(const char* name) {
  return std::string(NVLSIM_SOURCE_DIR) + "/tests/measurements/" + name;
}

/// What is wrong with the run of a row's scenario, by the records of the row. Empty if nothing is.
std::string difference(const row_scenario& row, const std::map<std::string, validation_record>& records,
                       const data_folders& data) {
  const validation_record& any = records.begin()->second;
  diagnostics problems;
  const config::document text = config::parse(to_json(row.scenario), {"scenario", "row"}, problems);
  const scenario s = parse_scenario(text.root, "row", {}, data);
  const result run = run_scenario(s, {.traced = false, .simulate = false}).outcome;
  if ((run.status == run_status::infeasible) != (any.status == record_status::infeasible))
    return fmt::format("run {}, row {} {}", name(run.status), name(any.status), any.reason);
  if (run.status == run_status::infeasible)
    return run.reasons.front() == any.reason ? "" : run.reasons.front() + " is not " + any.reason;
  for (const row_figure& f : row.figures) {
    const value* const metric = run.metrics.find(f.metric);
    const value* const x = f.statistic.empty() || !metric->members() ? metric : metric->find(f.statistic);
    const double got = x->number() ? f.factor * *x->number() : 0, wanted = *records.at(f.column).simulated;
    if (!(std::abs(got - wanted) <= 1e-9 * std::abs(wanted)))
      return fmt::format("{} is {:.12g}, the row's is {:.12g}", f.column, got, wanted);
  }
  return "";
}

/// A table with every n-th row of another, from the first on. All of them have taken two minutes of CPU time.
std::filesystem::path thinned(const std::filesystem::path& table, std::size_t n) {
  const std::filesystem::path out =
      std::filesystem::path(NVLSIM_BINARY_DIR) / ("every-so-many-" + table.filename().string());
  std::ifstream in(table);
  std::ofstream to(out);
  std::string line;
  for (std::size_t i = 0; std::getline(in, line); ++i)
    if (i == 0 || (i - 1) % n == 0) to << line << '\n';
  return out;
}

TEST_CASE("Rows that memory cannot hold are frozen no more than validated, whatever the load") {
  const data_folders data = folders_under(NVLSIM_SOURCE_DIR);
  const csv_table table = read_csv(shipped("inference.csv"));
  input_cache inputs(data);
  int open = 0, pooled = 0, others = 0;
  for (const csv_row& row : table.rows) {
    inference_row r = read_inference_row(row, "inference", inputs);
    if (r.record.status != record_status::ok || r.workload.mlperf || !can_freeze(r)) continue;
    int& seen = r.workload.pooled() ? pooled : r.request_rate ? open : others;
    if (++seen > 3) continue;
    r.hardware.gpu.hbm_usable = bytes::from_base(1e9);
    INFO(r.record.id);
    CHECK_FALSE(fits(r, *r.software));
    CHECK_THROWS_AS(freeze(r, *r.software), input_error);
    CHECK(simulate_row(r, *r.software).empty());
    CHECK(r.record.status == record_status::infeasible);
  }
  CHECK(pooled > 0);
  CHECK(open > 0);
  CHECK(others > 0);
}

TEST_CASE("Running the scenario of a row gives what validating the row gives") {
  const data_folders data = folders_under(NVLSIM_SOURCE_DIR);
  for (const char* shipped_table : {"inference.csv"}) {
    const std::filesystem::path table = thinned(shipped(shipped_table), 9);
    std::map<std::string, std::map<std::string, validation_record>> records;
    for (validation_record& r : validate_table(table, data)) records[r.id][r.metric] = r;
    const std::vector<row_scenario> rows = row_scenarios(table, data);
    CHECK(rows.size() > 250);
    std::vector<std::string> wrong(rows.size());
    in_parallel(rows.size(), [&](std::size_t i) { wrong[i] = difference(rows[i], records.at(rows[i].id), data); });
    std::size_t simulated = 0;
    for (const auto& [id, of] : records) {
      const record_status s = of.begin()->second.status;
      simulated += s == record_status::ok || s == record_status::infeasible ? 1 : 0;
    }
    CHECK(rows.size() == simulated);  // no row is left out
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO(rows[i].id << ": " << wrong[i]);
      CHECK(wrong[i].empty());
    }
  }
}

TEST_CASE("Scenarios are written of serving tables only") {
  CHECK_THROWS_AS(row_scenarios(shipped("models.csv"), folders_under(NVLSIM_SOURCE_DIR)), input_error);
}

}  // namespace
}  // namespace nvlsim
