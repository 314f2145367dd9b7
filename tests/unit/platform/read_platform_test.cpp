#include <algorithm>
#include <catch2/catch.hpp>

#include "support/platforms.hpp"

using namespace nvlsim;
using nvlsim::test::read;
using nvlsim::test::toy_text;
using nvlsim::test::toy_with;
using strings = std::vector<std::string>;

TEST_CASE("Platform reads every field in base units") {
  const auto [doc, p, problems] = read(toy_text());
  REQUIRE(problems == strings{});
  CHECK(p.name == "toy");
  CHECK(p.gpu.architecture == "toybox");
  CHECK(p.gpu.peak(precision::bf16)->sparse->base() == 2e15);
  CHECK(p.gpu.peak(precision::fp8)->energy->base() == Approx(0.3e-12));
  CHECK(p.gpu.hbm_stream.base() == 3e12);
  CHECK(p.gpu.exponentials.base() == 4e12);
  CHECK(p.vm.memory.base() == 400 * 1073741824.0);
  CHECK(p.vm.front_end.base() == 12.5e9);
  CHECK(p.fabric.nic_bandwidth.base() == 50e9);
  CHECK(p.fabric.leaf.latency.base() == Approx(0.2e-6));
  CHECK_FALSE(p.rack.provisioned_power);
  CHECK(p.price.per_gpu->base() == Approx(3.0 / 3600));
  CHECK(p.gpus() == 4);
}

TEST_CASE("Platform records its defaults") {
  const auto r = read(toy_text());
  const value resolved = r.doc.resolved();
  CHECK(*resolved.at_pointer("/racks")->integer() == 1);
  CHECK(*resolved.at_pointer("/fabric/oversubscription")->number() == 1.0);
  CHECK(*resolved.at_pointer("/fabric/sharp")->boolean() == false);
  CHECK(*resolved.at_pointer("/fabric/gpus_per_nic")->integer() == 1);
  CHECK(*resolved.at_pointer("/fabric/leaf/sharp")->boolean() == false);
}

TEST_CASE("GPU peak of a format falls back on the tensor format that bounds it") {
  const gpu_spec gpu = read(toy_text()).p.gpu;
  CHECK(gpu.dense_peak(precision::fp8_block)->base() == 2e15);
  CHECK(gpu.dense_peak(precision::mxfp8)->base() == 2e15);
  CHECK(gpu.dense_peak(precision::fp16)->base() == 1e15);
  CHECK_FALSE(gpu.dense_peak(precision::nvfp4));
  CHECK_FALSE(gpu.dense_peak(precision::int4));
}

TEST_CASE("GPU peak of a format of its own comes before that of a relative") {
  const auto r = read(toy_with(R"("fp8": {)", R"("fp16": {"dense": "3 PFLOPS"}, "fp8": {)"));
  CHECK(r.p.gpu.dense_peak(precision::fp16)->base() == 3e15);
  CHECK(r.p.gpu.dense_peak(precision::bf16)->base() == 1e15);
}

TEST_CASE("Platform without CPUs needs no cpu section") {
  std::string text = toy_with(R"("cpus": 1)", R"("cpus": 0)");
  const auto from = text.find("  \"cpu\": {"), to = text.find("  \"vm\"");
  text.erase(from, to - from);
  const auto r = read(text);
  CHECK(r.problems == strings{});
  CHECK(totals(r.p).cpus == 0);
}

TEST_CASE("Platform names every number that has no source") {
  const auto r = read(toy_with(R"("kind": "vendor", "source": "page",
    "name": "toy-net")",
                               R"("name": "toy-net")"));
  const std::string needs = R"(a number here needs its source: {"value": ..., "kind": ..., "source": ...})";
  CHECK(r.problems == strings{"toy.json#/fabric/latency: " + needs, "toy.json#/fabric/leaf/latency: " + needs,
                              "toy.json#/fabric/leaf/port_bandwidth: " + needs,
                              "toy.json#/fabric/leaf/ports: " + needs, "toy.json#/fabric/nic_bandwidth: " + needs,
                              "toy.json#/fabric/nic_efficiency: " + needs});
}

TEST_CASE("Platform spells sources out in full") {
  const auto r = read(toy_text());
  const auto find = [&](const std::string& pointer) {
    for (const auto& s : r.doc.sources)
      if (s.pointer == pointer) return s;
    return config::provenance{};
  };
  CHECK(find("/gpu/tdp").source == "the vendor's page");
  CHECK(find("/gpu/tdp").kind == "vendor");
  CHECK(find("/gpu/tdp").text == "1 kW");
  CHECK(find("/price/per_gpu").text == "3 USD/h");
  CHECK(find("/gpu/peaks/bf16/sparse").text == "2 PFLOPS");
}

TEST_CASE("A source of the table may be a single word") {
  const auto r = read(toy_with("the vendor's page", "quote2026"));
  CHECK(r.problems == strings{});
  CHECK(std::any_of(r.doc.sources.begin(), r.doc.sources.end(),
                    [](const config::provenance& s) { return s.source == "quote2026"; }));
}

TEST_CASE("Platform value set by the user needs no source and names the user") {
  diagnostics problems;
  config::document doc = config::parse(toy_text(), {"platform toy", "toy.json"}, problems);
  config::override_value(doc, "/price/per_gpu", value{"35 USD/h"}, {"--set", "--set"}, problems);
  config::override_value(doc, "/rack/provisioned_power", value{"5 kW"}, {"--set", "--set"}, problems);
  config::override_value(doc, "/gpu/tdp", value{"2 kW"}, {"--set", "--set"}, problems);
  const platform p = read_platform(doc, "toy", problems);
  CHECK(problems.sorted().empty());
  CHECK(p.price.per_gpu->base() == Approx(35.0 / 3600));
  CHECK(p.rack.provisioned_power->base() == 5e3);
  int by_user = 0;
  for (const auto& s : doc.sources)
    if (s.source == "set by the user" && s.kind == "assumed") ++by_user;
  CHECK(by_user == 3);
}

TEST_CASE("Platform with a bad field says what is wrong with it") {
  struct bad {
    const char* from;
    const char* to;
    const char* problem;
  };
  const auto c = GENERATE(
      bad{R"("nvlsim.platform/1")", R"("nvlsim.stack/1")",
          R"(/schema: expected "nvlsim.platform/1", found "nvlsim.stack/1")"},
      bad{R"("fp8": {)", R"("fp9": {)", R"(/gpu/peaks/fp9: unknown precision "fp9"; did you mean "fp8"?)"},
      bad{R"("hbm_usable": "100 GB")", R"("hbm_usable": "0 GB")", R"(/gpu/hbm_usable: "0 GB" is zero)"},
      bad{R"("hbm_usable": "100 GB")", R"("hbm_usable": "200 GB")",
          "/gpu/hbm_usable: 200 GB is more than /gpu/hbm_nominal (100 GB), even read as GiB"},
      bad{R"("sparse": "2 PFLOPS")", R"("sparse": "0.5 PFLOPS")",
          "/gpu/peaks/bf16/sparse: 500 TFLOPS is less than the dense peak (1 PFLOPS)"},
      bad{R"("hbm_stream": "3 TB/s")", R"("hbm_stream": "5 TB/s")",
          "/gpu/hbm_stream: 5 TB/s is more than /gpu/hbm_bandwidth (4 TB/s)"},
      bad{R"("idle_power": "100 W")", R"("idle_power": "1 kW")",
          "/gpu/idle_power: 1 kW is not less than /gpu/tdp (1 kW)"},
      bad{R"("nvlink_links": 10)", R"("nvlink_links": 1)",
          "/rack/nvlink_planes: 2 planes, but a GPU has only 1 links; it needs at least one to each plane"},
      bad{R"("nvlink": "500 GB/s")", R"("nvlink": "0 GB/s")", "/gpu/nvlink: 0 B/s over 10 links"},
      bad{R"("nvlink_switch_trays": 1)", R"("nvlink_switch_trays": 3)",
          "/rack/nvlink_switch_trays: 3 switch trays for 2 planes; each tray holds at least one plane"},
      bad{R"("idle_power": "50 W")", R"("idle_power": "400 W")",
          "/cpu/idle_power: 400 W is more than /cpu/max_power (300 W)"},
      bad{R"("latency": "2 us",)", R"("latency": "2 us", "sharp": true,)",
          "/fabric/sharp: the switch has no in-network reduction (/fabric/leaf/sharp)"},
      bad{R"("latency": "2 us",)", R"("latency": "2 us", "oversubscription": 0.5,)",
          "/fabric/oversubscription: 0.5 is less than 1"},
      bad{R"("nic_efficiency": 0.9,)", R"("nic_efficiency": 0.9, "gpus_per_nic": 4,)",
          "/fabric/gpus_per_nic: 4 GPUs share a NIC, but a VM has 2"},
      bad{R"("nic_efficiency": 0.9)", R"("nic_efficiency": 95)", "/fabric/nic_efficiency: 95 is more than 1"},
      bad{R"("ports": 8)", R"("ports": 3)", "/fabric/leaf/ports: 3 is less than 4"},
      bad{R"("sm_count": 100)", R"("sm_count": 100.5)", "/gpu/sm_count: expected an integer, found number 100.5"},
      bad{R"("tdp": "1 kW")", R"("tdp": 1000)",
          R"(/gpu/tdp: expected a power such as "1.4 kW", found integer 1000)"},
      bad{R"("c2c")", R"("c2_c")", R"(/gpu: required member "c2c" is missing)"},
      bad{R"("source": "page"}, "note")", R"("source": "pge"}, "note")",
          R"(/price/per_gpu: source "pge" is not in the "sources" table; did you mean "page"?)"},
      bad{R"("kind": "vendor", "source": "page"}, "note")", R"("kind": "guessed", "source": "page"}, "note")",
          R"(/price/per_gpu/kind: expected one of measured, vendor, derived, assumed, found "guessed")"},
      bad{R"("description": "toy")", R"("description": "toy", "racks": 1000000)", nullptr},
      bad{R"("description": "toy")", R"("description": "toy", "racks": 2000000)",
          "/racks: 2000000 is more than 1000000"});
  const strings problems = read(toy_with(c.from, c.to)).problems;
  if (!c.problem) {
    CHECK(problems == strings{});
  } else {
    REQUIRE_FALSE(problems.empty());
    CHECK(problems.front() == std::string("toy.json#") + c.problem);
  }
}

TEST_CASE("Platform reports all problems of one reading, none twice") {
  std::string text = toy_with(R"("hbm_bandwidth": "4 TB/s")", R"("hbm_bandwidth": "4 TB")");
  const std::string from = R"("idle_power": "50 W")";
  text.replace(text.find(from), from.size(), R"("idle_power": "50 W", "turbo": true)");
  // hbm_stream exceeds the stand-in of the unreadable hbm_bandwidth; that is no second problem.
  CHECK(read(text).problems ==
        strings{R"(toy.json#/cpu/turbo: unknown member)",
                R"(toy.json#/gpu/hbm_bandwidth: "4 TB" is a size; expected a bandwidth such as "900 GB/s")"});
}

TEST_CASE("Platform that is empty names its sections") {
  CHECK(read(R"({"schema": "nvlsim.platform/1", "description": ""})").problems ==
        strings{
            R"(toy.json#: required member "fabric" is missing)", R"(toy.json#: required member "gpu" is missing)",
            R"(toy.json#: required member "rack" is missing)", R"(toy.json#: required member "vm" is missing)"});
}

TEST_CASE("Platform with CPUs in its VMs and no cpu section is a contradiction") {
  std::string text = toy_text();
  const auto from = text.find("  \"cpu\": {"), to = text.find("  \"vm\"");
  text.erase(from, to - from);
  CHECK(read(text).problems == strings{"toy.json#/vm/cpus: 1 CPUs, but the platform has no \"cpu\""});
}

TEST_CASE("Platform of too many GPUs is refused before they overflow") {
  std::string text = toy_with(R"("gpus": 2)", R"("gpus": 1024)");
  const std::string from = R"("description": "toy")";
  text.replace(text.find(from), from.size(), from + R"(, "racks": 1000000)");
  CHECK(read(text).problems.back() == "toy.json#/racks: 2048000000 GPUs are more than 1000000000");
}
