// Errors against the published sweeps with the shipped parameters, and the fit that gives these.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "nvlsim/fit.hpp"
#include "study/csv.hpp"
#include "study/tables.hpp"

using namespace nvlsim;

namespace {

const std::filesystem::path root = NVLSIM_SOURCE_DIR;
const std::filesystem::path table = root / "tests/measurements/collectives.csv";

const std::vector<validation_record>& records() {
  static const std::vector<validation_record> all = validate_collectives(read_csv(table), folders_under(root), {});
  return all;
}

struct summary {
  std::size_t count = 0;
  double median = 0, p90 = 0;
};
summary errors(const std::function<bool(const validation_record&)>& keep) {
  std::vector<double> e;
  for (const validation_record& r : records())
    if (keep(r) && r.error()) e.push_back(std::abs(*r.error()));
  std::sort(e.begin(), e.end());
  if (e.empty()) return {};
  return {e.size(), e[e.size() / 2], e[e.size() * 9 / 10]};
}

}  // namespace

TEST_CASE("Every published collective is simulated") {
  for (const validation_record& r : records()) {
    INFO(r.id << " " << r.reason);
    CHECK(r.status == record_status::ok);
  }
}

TEST_CASE("Collectives agree with published sweeps") {
  struct limit {
    const char* scenario;
    double median, p90;
  };
  for (const limit& l : {limit{"one domain, 1 MiB and more", 0.025, 0.10}, limit{"one domain, under 1 MiB", 0.03, 0.10},
                         limit{"across domains", 0.03, 0.125}, limit{"expert exchange", 0.03, 0.09}}) {
    const summary s = errors([&](const validation_record& r) { return r.scenario == l.scenario; });
    INFO(l.scenario << " " << s.count << " " << s.median << " " << s.p90);
    CHECK(s.count >= 100);
    CHECK(s.median <= l.median);
    CHECK(s.p90 <= l.p90);
  }
}

TEST_CASE("No system is missed by more than a few percent") {
  for (const validation_record& probe : records()) {
    static std::string last;
    if (probe.system == last) continue;
    last = probe.system;
    const summary s = errors([&](const validation_record& r) { return r.system == probe.system; });
    INFO(probe.system << " " << s.count << " " << s.median);
    CHECK(s.median <= 0.07);
  }
}

TEST_CASE("Fit of collectives gives the shipped profile again") {
  const fit_report f = fit_collectives({table}, folders_under(root), "", {});
  CHECK(f.rows == 1468);
  CHECK(f.median_error < 0.03);
  REQUIRE(f.files.size() == 1);
  CHECK(f.files[0].first == "nccl-2.29.json");
  std::vector<double> moves;
  for (const fitted_parameter& p : f.parameters)
    if (p.name.starts_with("/domain")) moves.push_back(std::abs(std::log(p.value / p.start)));
  std::sort(moves.begin(), moves.end());
  CHECK(moves[moves.size() / 2] < 0.02);
  diagnostics problems;
  const config::document doc = config::parse(f.files[0].second, {"stack", "s.json"}, problems);
  CHECK(problems.empty());
  const value* source = doc.root.at_pointer("/collectives/domain/nvlink5/all_reduce/source");
  REQUIRE(source);
  CHECK(source->string()->find("rows of GB200-NVL72") == std::string::npos);
  CHECK(source->string()->find("nvlsim fit collectives") == 0);
}

TEST_CASE("Fit of collectives predicts what it leaves out") {
  const fit_report f = fit_collectives({table}, folders_under(root), "system", {});
  std::size_t domains = 0, fabrics = 0;
  for (const auto& l : f.leave_out) {
    INFO(l.group << " " << l.median_error);
    CHECK(l.rows > 0);
    if (l.group.starts_with("domain/nvlink5") && l.rows > 20) {
      ++domains;
      CHECK(l.median_error < 0.08);
    }
    fabrics += l.group.starts_with("fabric/") ? 1 : 0;
  }
  CHECK(domains >= 8);
  CHECK(fabrics >= 8);
}
