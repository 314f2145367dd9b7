#include "nvlsim/measurements/row_scenarios.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/measurements/validate.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/run/run.hpp"

namespace nvlsim {
namespace {

/// Every 41st row of the shipped serving table.
std::filesystem::path sample() {
  const std::filesystem::path from = std::string(NVLSIM_SOURCE_DIR) + "/tests/measurements/inference.csv";
  const std::filesystem::path to = std::filesystem::path(NVLSIM_BINARY_DIR) / "inference-sample.csv";
  std::ifstream in(from);
  std::ofstream out(to);
  std::string line;
  for (int i = 0; std::getline(in, line); ++i)
    if (i % 41 == 0) out << line << '\n';
  return to;
}

TEST_CASE("Running the scenario of a row gives what validating the row gives") {
  const data_folders data = folders_under(NVLSIM_SOURCE_DIR);
  const std::filesystem::path table = sample();
  std::map<std::string, std::map<std::string, validation_record>> rows;
  for (validation_record& r : validate_table(table, data)) rows[r.id][r.metric] = r;
  int compared = 0;
  for (const auto& [id, text] : row_scenarios(table, data)) {
    const validation_record& first = rows.at(id).begin()->second;
    const bool differs = first.notes.find("does not fit as modelled") != std::string::npos ||
                         first.scenario.find("offline") != std::string::npos;
    if (differs || first.status != record_status::ok) continue;
    const std::filesystem::path file = std::filesystem::path(NVLSIM_BINARY_DIR) / "row-scenario.json";
    std::ofstream(file) << to_json(text);
    const scenario s = load_scenario(file.string(), {}, data);
    const run_record run = run_scenario(s, {.explained = false, .simulate = false});
    INFO(id);
    REQUIRE(run.outcome.status != run_status::infeasible);
    for (const auto& [metric, r] : rows.at(id)) {
      const bool tpot = metric == "tpot_ms";
      if (!tpot && metric != "ttft_ms") continue;
      const value* d = run.outcome.metrics.find(tpot ? "tpot_s" : "ttft_s");
      REQUIRE(d->members());
      const double mean = 1e3 * *d->find("mean")->number(), median = 1e3 * *d->find("p50")->number();
      const bool same = *r.simulated == Approx(mean).epsilon(1e-9) || *r.simulated == Approx(median).epsilon(1e-9);
      INFO(metric << " " << *r.simulated << " " << mean << " " << median);
      CHECK(same);
      ++compared;
    }
  }
  CHECK(compared > 40);
}

TEST_CASE("Scenarios are written of serving tables only") {
  CHECK_THROWS_AS(row_scenarios(std::string(NVLSIM_SOURCE_DIR) + "/tests/measurements/models.csv",
                                folders_under(NVLSIM_SOURCE_DIR)),
                  input_error);
}

}  // namespace
}  // namespace nvlsim
