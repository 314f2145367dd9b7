// Errors against the published sweeps with the shipped parameters, and the fit that gives these.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/output/output.hpp"
#include "support/root.hpp"
#include "unit/config/texts.hpp"

using namespace nvlsim;

namespace {

using test::root;
const std::filesystem::path collectives_table = root / "tests/measurements/collectives.csv";

const std::vector<validation_record>& records() {
  static const std::vector<validation_record> all =
      validate_collectives(read_csv(collectives_table), folders_under(root), {});
  return all;
}

struct summary {
  std::size_t count = 0;
  double median = 0, p90 = 0;
};
summary errors_where(const std::function<bool(const validation_record&)>& keep) {
  std::vector<double> e;
  for (const validation_record& r : records())
    if (keep(r) && r.error()) e.push_back(std::abs(*r.error()));
  std::sort(e.begin(), e.end());
  if (e.empty()) return {};
  return {e.size(), e[e.size() / 2], e[e.size() * 9 / 10]};
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

/// The stack file with every fitted value 1.4 times as large, which all of them may be.
std::string with_other_values(const std::string& stack, const std::vector<fitted_parameter>& fitted) {
  diagnostics problems;
  config::document doc = config::parse(stack, {"stack", "s.json"}, problems);
  for (const fitted_parameter& p : fitted) {
    std::string at = "/collectives" + p.name;
    const value* v = doc.root.at_pointer(at);
    if (v && v->members()) v = doc.root.at_pointer(at += "/value");
    REQUIRE(v);
    const std::string unit = v->string() ? v->string()->substr(v->string()->find(' ')) : "";
    const double now = v->string()   ? std::stod(*v->string())
                       : v->number() ? *v->number()
                                     : static_cast<double>(*v->integer());
    config::override_value(doc, at, config::parse_scalar(fmt::format("{}{}", now * 1.4, unit)), {"test", "test"},
                           problems);
  }
  REQUIRE(problems.empty());
  return to_json(doc.root);
}

}  // namespace

TEST_CASE("Every published collective is simulated") {
  for (const validation_record& r : records()) {
    INFO(r.id << " " << r.reason);
    CHECK(r.status == record_status::ok);
  }
}

TEST_CASE("Systems without published rows are read, and take the times of their kin") {
  const config::test::scratch_folder folder;
  const auto seconds_of = [&](const char* system, const char* collective, int gpus, double bytes) {
    folder.write("collectives.csv",
                 fmt::format("id,system,nodes,gpus,gpus_per_nvlink_domain,collective,algorithm,message_bytes,"
                             "time_us\nX,{},{},{},8,{},auto,{:.0f},1\n",
                             system, (gpus + 7) / 8, gpus, collective, bytes));
    const auto all = validate_collectives(read_csv(folder.path() / "collectives.csv"), folders_under(root), {});
    INFO(system << " " << all.at(0).reason);
    REQUIRE(all.at(0).status == record_status::ok);
    return all.at(0).simulated.value();
  };
  for (const char* c : {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"})
    for (const double bytes : {512.0, 1048576.0, 1073741824.0})
      for (const int gpus : {2, 4, 8}) {
        INFO(c << " of " << bytes << " bytes on " << gpus);
        CHECK(seconds_of("H200-HGX", c, gpus, bytes) == Approx(seconds_of("H100-HGX", c, gpus, bytes)));
        CHECK(seconds_of("B300-HGX", c, gpus, bytes) == Approx(seconds_of("B200-HGX", c, gpus, bytes)));
        CHECK(seconds_of("V100-HCM8", c, gpus, bytes) < 15 * seconds_of("A100-HGX", c, gpus, bytes));
      }
  // A hybrid cube mesh: six rings of 25 GB/s links among eight, one link between the first two.
  const double of_eight = 1.75 * 1073741824 / seconds_of("V100-HCM8", "all_reduce", 8, 1073741824) / 1e3;
  CHECK(of_eight > 120);
  CHECK(of_eight < 150);
  CHECK(1073741824 / seconds_of("V100-HCM8", "all_reduce", 2, 1073741824) / 1e3 < 25);
  CHECK(seconds_of("H200-HGX", "all_reduce", 16, 1073741824) ==
        Approx(seconds_of("H100-HGX-IB-NDR", "all_reduce", 16, 1073741824)));
  // Twice the NICs help no collective that a domain's switch bounds.
  const double wide = seconds_of("B300-HGX", "all_reduce", 16, 1073741824) /
                      seconds_of("B200-HGX-NDR/RoCE400", "all_reduce", 16, 1073741824);
  CHECK(wide > 0.5);
  CHECK(wide <= 1);
}

TEST_CASE("Collectives agree with published sweeps") {
  struct limit {
    const char* scenario;
    double median, p90;
  };
  for (const limit& l :
       {limit{"one domain, 1 MiB and more", 0.025, 0.10}, limit{"one domain, under 1 MiB", 0.03, 0.10},
        limit{"across domains", 0.03, 0.125}, limit{"expert exchange", 0.03, 0.09}}) {
    const summary s = errors_where([&](const validation_record& r) { return r.scenario == l.scenario; });
    INFO(l.scenario << " " << s.count << " " << s.median << " " << s.p90);
    CHECK(s.count >= 100);
    CHECK(s.median <= l.median);
    CHECK(s.p90 <= l.p90);
  }
}

TEST_CASE("Nine of ten published collectives lie in their bands") {
  std::size_t inside = 0;
  for (const validation_record& r : records()) {
    INFO(r.id);
    REQUIRE(r.band);
    inside += *r.published >= r.band->first && *r.published <= r.band->second ? 1 : 0;
  }
  CHECK(static_cast<double>(inside) >= 0.85 * static_cast<double>(records().size()));
  CHECK(static_cast<double>(inside) <= 0.98 * static_cast<double>(records().size()));
}

TEST_CASE("No system is missed by more than a few percent") {
  for (const validation_record& probe : records()) {
    static std::string last;
    if (probe.system == last) continue;
    last = probe.system;
    const summary s = errors_where([&](const validation_record& r) { return r.system == probe.system; });
    INFO(probe.system << " " << s.count << " " << s.median);
    CHECK(s.median <= 0.055);
  }
}

TEST_CASE("Fit of collectives gives the shipped profile again, wherever it begins") {
  const std::vector<std::filesystem::path> tables = {collectives_table, root / "tests/measurements/kernels.csv",
                                                     root / "tests/measurements/kernels-more.csv"};
  const std::string shipped = text_of(root / "platforms/stacks/collectives/nccl-2.29.json");
  data_folders data = folders_under(root);
  const fit_report f = fit_collectives(tables, data, "", {});
  CHECK(f.rows == 3636);
  CHECK(f.median_error < 0.03);
  REQUIRE(f.files.size() == 1);
  CHECK(f.files[0].first == "collectives/nccl-2.29.json");
  CHECK((f.files[0].second == shipped));
  // Nothing of an earlier fit is left in it: the same from a file whose fitted values are all different.
  const config::test::scratch_folder folder;
  std::filesystem::create_directory(folder.path() / "collectives");
  folder.write("collectives/nccl-2.29.json", with_other_values(shipped, f.parameters));
  data.stacks = folder.path();
  CHECK((fit_collectives(tables, data, "", {}).files[0].second == shipped));
}

TEST_CASE("Fit of a few rows gives a file, and no band that so few do not show") {
  const config::test::scratch_folder folder;
  std::ifstream in(collectives_table);
  std::string few, line;
  const auto of = [&](const char* word) { return line.find(word) != std::string::npos; };
  for (std::size_t n = 0; std::getline(in, line); ++n)
    if (n == 0 || (of(",alltoall,") && (of("multirack-RoCE") || (of("H100-p5-EFA") && n % 2 == 0))))
      few += line + '\n';
  folder.write("few.csv", few);
  const fit_report f = fit_collectives({folder.path() / "few.csv"}, folders_under(root), "", {});
  CHECK(f.rows == 14);
  REQUIRE(f.files.size() == 1);
  diagnostics problems;
  const config::document doc = config::parse(f.files[0].second, {"stack", "s.json"}, problems);
  const value* spreads = doc.root.at_pointer("/collectives/spreads/families");
  REQUIRE(spreads);
  CHECK(spreads->items()->empty());
}

TEST_CASE("Fit of collectives predicts what it leaves out") {
  const fit_report f = fit_collectives({collectives_table}, folders_under(root), "system", {});
  std::size_t domains = 0, fabrics = 0;
  double sum = 0;
  for (const auto& l : f.leave_out) {
    INFO(l.group << " " << l.median_error);
    CHECK(l.rows > 0);
    if (l.group.starts_with("domain/nvlink5") && l.rows > 20) {
      ++domains;
      CHECK(l.median_error < 0.08);
    }
    if (!l.group.starts_with("fabric/") && !l.group.starts_with("all_to_all/")) continue;
    ++fabrics;
    sum += l.median_error;
    CHECK(l.median_error < 0.2);
  }
  CHECK(domains >= 8);
  REQUIRE(fabrics >= 12);
  CHECK(sum / static_cast<double>(fabrics) < 0.09);
}
