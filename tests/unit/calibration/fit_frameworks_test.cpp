// The fit of training frameworks other than Megatron.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "calibration/step_residuals.hpp"
#include "nvlsim/analysis/error_summary.hpp"
#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;
const std::filesystem::path frameworks_table = root / "tests/measurements/training-more.csv";

TEST_CASE("Fit of frameworks gives the shipped stacks, and predicts configurations that it has not seen") {
  const fit_report f = fit_frameworks({frameworks_table}, folders_under(root), "configuration");
  REQUIRE(f.files.size() >= 4);
  for (const auto& [file, text] : f.files) {
    INFO(file);
    std::ostringstream shipped;
    shipped << std::ifstream(root / "platforms/stacks" / file).rdbuf();
    CHECK((shipped.str() == text));
  }
  CHECK(f.median_error < 0.07);
  for (const auto& l : f.leave_out) {
    INFO(l.group << " " << l.rows << " " << l.mean_error);
    CHECK(l.mean_error < 0.13);
  }
}

TEST_CASE("A table without other frameworks is refused") {
  CHECK_THROWS_AS(fit_frameworks({root / "tests/measurements/training.csv"}, folders_under(root), ""),
                  input_error);
}

TEST_CASE("Few steps of a kind take most of their band from the pool") {
  std::vector<unseen_step> pool;
  for (int i = -50; i <= 50; ++i) pool.push_back({"pool", {}, i / 100.0});
  const std::vector<unseen_step> own = {{"a", {}, 0.01}, {"b", {}, -0.01}};
  const auto bands = residuals_by_kind(own, pool);
  REQUIRE(bands.size() == 1);
  CHECK(bands[0].rows == 2);
  CHECK(bands[0].low < -0.35);
  CHECK(bands[0].high > 0.35);
  CHECK(coverage_of(own, pool) == 1);
}

TEST_CASE("Coverage by cell counts what is inside, and the binomial interval says what 90 % allow") {
  std::vector<unseen_step> steps;
  for (int i = 0; i < 100; ++i)  // by turns in two cells; one of twenty steps is far off
    steps.push_back({std::to_string(i), {}, i % 20 == 0 ? 2 : i / 1000.0, i % 2 == 0 ? "even" : "odd"});
  for (int i = 0; i < 9; ++i) steps.push_back({"few", {}, 0, "few"});
  const auto cells = coverage_by_cell(steps, steps);
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].cell == "even");
  CHECK(cells[0].rows == 50);
  CHECK(cells[0].inside == 45);
  CHECK(expected_in_band(50).hold(45));
  CHECK(cells[1].inside > 45);
  // Binomial with n = 10, p = 0.9: P(k <= 6) = 0.0128, P(k <= 7) = 0.0702, P(k <= 9) = 0.6513.
  CHECK(expected_in_band(10).low == 7);
  CHECK(expected_in_band(10).high == 10);
  // n = 100: mean 90, deviation 3.
  CHECK(expected_in_band(100).low == 84);
  CHECK(expected_in_band(100).high == 95);
}

}  // namespace
}  // namespace nvlsim
