#include "calibration/serving_residuals.hpp"
#include "nvlsim/run/serving_bands.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>

#include "nvlsim/run/explain_scenario.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;

std::vector<served_error> served_errors(const std::string& gpu, const std::string& kind, double worst,
                                        std::size_t n = 40) {
  std::vector<served_error> out;
  for (std::size_t i = 1; i <= n; ++i)
    out.push_back({"vllm", "vllm-0.19", kind, gpu, gpu == "b200" ? "blackwell" : "hopper", "m", "tpot",
                   precision::fp8, (i % 2 ? 1 : -1) * worst * static_cast<double>(i) / static_cast<double>(n)});
  return out;
}

std::vector<served_error> both(std::vector<served_error> a, const std::vector<served_error>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_CASE("Widths are nine tenths of the residuals by kind, a quarter wider") {
  const value c =
      calibration_of(both(served_errors("h100", "dense", 0.4), served_errors("b200", "experts", 0.8)), "vllm");
  CHECK(*c.at_pointer("/dense/tpot")->number() == Approx(1.25 * 0.36));
  CHECK(*c.at_pointer("/experts/tpot")->number() == Approx(1.25 * 0.72));
  CHECK(c.at_pointer("/measured/h100")->items()->front() == value{"fp8"});
  CHECK(*c.at_pointer("/cells/h100~1m/tpot")->number() == Approx(1.25 * 0.36));
  CHECK(*c.at_pointer("/architectures/blackwell/tpot")->number() == Approx(1.25 * 0.72));
  CHECK(*release_widths(served_errors("h100", "dense", 0.4), "vllm-0.19").find("tpot")->number() ==
        Approx(1.25 * 0.36));
  CHECK(release_widths(served_errors("h100", "dense", 0.4), "vllm-0.17").members()->empty());
  CHECK_FALSE(c.find("pools"));
  CHECK_FALSE(calibration_of(served_errors("h100", "pools", 1, 12), "vllm").find("pools"));  // too few to say
  CHECK(calibration_of(served_errors("h100", "dense", 1), "sglang").find("measured")->members()->empty());
}

TEST_CASE("Coverage takes each system's bands from the others") {
  const auto alike = both(served_errors("h100", "dense", 0.5), served_errors("b200", "dense", 0.5));
  CHECK(coverage_elsewhere(alike) == Approx(0.9));
  CHECK(*widths_elsewhere(alike, "vllm").find("tpot")->number() == Approx(0.45));
  // One system is twice as far off: its own bands would hide that.
  CHECK(coverage_elsewhere(both(served_errors("h100", "dense", 0.5), served_errors("a100", "dense", 1))) ==
        Approx((0.45 + 1) / 2).margin(0.02));
}

scenario load(const std::vector<override_option>& sets) {
  return load_scenario(root / "scenarios/inference/llama2-70b-offline-gb300-rack.json", sets, folders_under(root));
}

TEST_CASE("A GPU that the stack was not fitted to at this precision has a wider band, and words that say so") {
  const std::string calibration = "/stack/inference/calibration";
  const auto with = [&](const std::string& formats) {
    return load({{calibration, R"({"measured": {"gb300": [)" + formats +
                                   R"(]}, "dense": {"throughput": 0.2}, "elsewhere": {"throughput": 0.5}})"}});
  };
  run_status status = run_status::ok;
  const explanation known = explain_scenario(with(R"("nvfp4")"), "output_tokens_per_s", status);
  REQUIRE(known.band);
  CHECK(known.band->second / *known.amount == Approx(std::exp(0.2)));
  CHECK(known.band->first / *known.amount == Approx(std::exp(-0.2)));
  CHECK(known.band_reasons.front().find("of dense models") != std::string::npos);
  const explanation other = explain_scenario(with(R"("fp8")"), "output_tokens_per_s", status);
  REQUIRE(other.band);
  CHECK(other.band->second / *other.amount == Approx(std::exp(0.5)));
  REQUIRE(other.band_reasons.size() >= 2);
  CHECK(other.band_reasons[1].starts_with("no measurement of gb300 at nvfp4 with "));
  const explanation tail = explain_scenario(with(R"("nvfp4")"), "ttft_s.p99", status);
  CHECK_FALSE(tail.band);
  CHECK(tail.band_reasons.front().starts_with("no band"));
}

TEST_CASE("Rates that the arrivals set have no band") {
  const scenario s =
      load_scenario(root / "scenarios/inference/llama3.3-70b-trace-gb300-rack.json", {}, folders_under(root));
  run_status status = run_status::ok;
  CHECK_FALSE(explain_scenario(s, "output_tokens_per_s", status).band);
  CHECK(explain_scenario(s, "tpot_s.mean", status).band);
}

}  // namespace
}  // namespace nvlsim
