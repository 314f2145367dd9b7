// Which widths a serving result gets.
#include "nvlsim/run/serving_bands.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "nvlsim/run/run.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

/// A shipped scenario of routed experts whose engine was measured with these widths.
scenario measured_with(std::map<std::string, error_widths> kinds) {
  using test::root;
  scenario s =
      load_scenario(root / "scenarios/inference/deepseek-r1-gb300-prefill-decode.json", {}, folders_under(root));
  const auto& w = std::get<inference_workload>(s.workload);
  serving_calibration& c = s.stack.inference->calibration;
  c.kinds = std::move(kinds);
  c.elsewhere = {0.5, 0.9, 0.6};
  c.measured = {{s.platform.gpu.name, {error_format(s.model, w)}}};
  return s;
}

TEST_CASE("Band of a GPU and model that were measured is theirs, wider if their release's is") {
  const scenario s = measured_with({{"pools", {0.4, 0.8, 0.3}},
                                    {"blackwell", {0.45, 0.85, 0.35}},
                                    {"release", {0.05, 0.3, 0}},
                                    {"gb300/deepseek-r1", {0.1, 0.2, 0}}});
  REQUIRE(s.platform.gpu.name + "/" + s.model.name == "gb300/deepseek-r1");
  const served_band b = band_of(s);
  CHECK(b.gap.empty());
  CHECK(b.widths.tpot == 0.1);
  CHECK(b.widths.ttft == 0.3);
  CHECK(b.widths.throughput == 0.3);
}

TEST_CASE("Band of a model that was not measured on a GPU is no narrower than that of cells left out") {
  const scenario s = measured_with(
      {{"pools", {0.4, 0.8, 0.3}}, {"blackwell", {0.55, 0.85, 0.35}}, {"gb300/another", {0.1, 0.2, 0.1}}});
  const served_band b = band_of(s);
  CHECK(b.gap.find("no measurement of deepseek-r1 on gb300") == 0);
  CHECK(b.widths.tpot == 0.55);
  CHECK(b.widths.ttft == 0.9);
  CHECK(b.widths.throughput == 0.6);
}

}  // namespace
}  // namespace nvlsim
