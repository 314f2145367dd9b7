#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <string_view>

#include "nvlsim/output/input_pages.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"
#include "support/platforms.hpp"

using namespace nvlsim;
using Catch::Matchers::Contains;
using nvlsim::test::read_shipped;

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    out.emplace_back(text.substr(0, end));
  return out;
}

/// Runs of blanks as one, so that a column may grow.
std::string squeezed(std::string text) {
  text.erase(std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
             text.end());
  return text;
}

}  // namespace

TEST_CASE("Platform page fits a terminal") {
  for (const std::string& name : config::names_in(NVLSIM_SOURCE_DIR "/platforms")) {
    const auto r = read_shipped(name);
    for (const std::string& line : lines_of(platform_page(r.p, r.doc))) {
      CAPTURE(name, line);
      CHECK(output::width(line) <= output::table_columns);
      CHECK_FALSE(line.ends_with(' '));
    }
  }
}

TEST_CASE("Platform page sets dense beside sparse and nominal beside usable") {
  auto r = read_shipped("gb300-nvl72");
  r.p.racks = 64;
  const std::string page = squeezed(platform_page(r.p, r.doc));
  for (const char* passage :
       {"64 racks, 1152 VMs, 4608 GPUs, 2304 CPUs\n", " precision dense 2:4 sparse energy\n",
        " nvfp4 15 PFLOPS 20 PFLOPS 0.235 pJ/FLOP\n", " int8 165 TOPS 330 TOPS -\n",
        " HBM nominal, data sheet 288 GB\n", " HBM usable 298013687808 B\n", " NIC of 800 Gb/s 100 GB/s\n",
        " leaf switches 64\n", " spine switches 32\n", " /gpu/hbm_usable 298013687808 B measured [1]\n"})
    CHECK_THAT(page, Contains(passage));
}

TEST_CASE("Platform page of a machine without CPUs, FP4 and price") {
  auto r = nvlsim::test::read(nvlsim::test::toy_text());
  r.p.vm.cpus = 0;
  r.p.price = {};
  CHECK_THAT(squeezed(platform_page(r.p, r.doc)),
             Contains("1 rack, 2 VMs, 4 GPUs, 0 CPUs\n") && Contains(" FP4 dense -\n") &&
                 Contains(" BF16 dense 4 PFLOPS\n") && Contains(" per GPU unknown\n") && !Contains("per CPU"));
  const value json = platform_json(r.p, r.doc);
  CHECK(json.find("cpu")->is_null());
  CHECK(json.at_pointer("/price/usd_per_gpu_hour")->is_null());
  CHECK(json.at_pointer("/gpu/dense_flops/nvfp4") == nullptr);
  CHECK(json.at_pointer("/gpu/sparse_flops/fp8") == nullptr);
}

TEST_CASE("Platform document has the totals in plain numbers") {
  auto r = read_shipped("gb300-nvl72");
  const value json = platform_json(r.p, r.doc);
  const auto integer = [&](const char* pointer) { return *json.at_pointer(pointer)->integer(); };
  const auto number = [&](const char* pointer) { return *json.at_pointer(pointer)->number(); };
  CHECK(integer("/totals/racks") == 1);
  CHECK(integer("/totals/vms") == 18);
  CHECK(integer("/totals/gpus") == 72);
  CHECK(integer("/totals/cpus") == 36);
  CHECK(number("/totals/nvlink_bandwidth_Bps") == 1.296e14);
  CHECK(integer("/totals/hbm_usable_bytes") == 72 * std::int64_t{298013687808});
  CHECK(integer("/totals/nvme_bytes") == 288000000000000);
  CHECK(number("/totals/fp4_dense_flops") == 1.08e18);
  CHECK(number("/totals/fp4_sparse_flops") == 1.44e18);
  CHECK(number("/totals/scale_out_bandwidth_Bps_per_gpu") == 1e11);
  CHECK(number("/gpu/dense_flops/bf16") == 2.5e15);
  CHECK(number("/gpu/sparse_flops/bf16") == 5e15);
  CHECK(integer("/fabric/levels") == 1);
  CHECK(*json.at_pointer("/fabric/switches/0")->integer() == 1);
  CHECK(json.at_pointer("/price/usd_per_gpu_hour")->is_null());
  CHECK_THAT(to_json(json), Contains("\"hbm_usable_bytes\": 21456985522176,"));
}

TEST_CASE("Platform document repeats the provenance of every number") {
  const auto r = read_shipped("gb200-nvl72");
  const value json = platform_json(r.p, r.doc);
  const auto& list = *json.find("provenance")->items();
  REQUIRE(list.size() == r.doc.sources.size());
  const auto tdp = std::find_if(list.begin(), list.end(),
                                [](const value& v) { return *v.find("pointer")->string() == "/gpu/tdp"; });
  REQUIRE(tdp != list.end());
  CHECK(*tdp->find("value")->string() == "1.2 kW");
  CHECK(*tdp->find("kind")->string() == "vendor");
  CHECK_THAT(*tdp->find("source")->string(), Contains("aiconfigurator"));
}
