// What `stack show` prints of a stack made by hand.
#include <catch2/catch.hpp>

#include <string>

#include "nvlsim/output/input_pages.hpp"
#include "unit/config/texts.hpp"

using namespace nvlsim;

namespace {

config::document small_stack() {
  config::document doc = config::test::parsed(R"({
    "kernels": {"blackwell": {"gemm": {"bf16": {"launch": "3 us", "fill": 2}}, "stream": {"launch": "0.0015 ms"}},
                "gb300": {"like": "blackwell", "gemm": {"bf16": {"launch": "2 us"}}}, "h100": {"gemm": {"bf16": {"launch": "9 us"}}}},
    "collectives": {"fabric": {"quantum-x800": {"latency": "4 us"}, "default": {"latency": "7 us"}}},
    "inference": {"host": {"value": "2.423e+04 us", "kind": "derived", "source": "s"}, "layer": 1,
                  "gpus": {"blackwell": {"layer": 2}}}})");
  doc.self = {"stack engine", "engine.json"};
  doc.origins["/kernels/blackwell"] = {"stack kernels/lib", "lib.json"};
  doc.origins["/inference/host"] = {"stack engine, release 1.0", "engine.json"};
  doc.sources.push_back({"/inference/host", "2.423e+04 us", "derived", "where it was published"});
  return doc;
}

std::string page(const platform* machine, const value& releases = {}) {
  stack s;
  s.name = "engine-1.0";
  s.description = "made by hand";
  return stack_page(s, small_stack(), machine, releases);
}

}  // namespace

TEST_CASE("Stack page names the file of each member, in units that a person reads") {
  CHECK(page(nullptr) == R"(engine-1.0: made by hand

Files
  [1]  engine.json, release 1.0
  [2]  engine.json
  [3]  kernels/lib.json

inference
  host   24.23 ms  derived  [1]
  layer         1           [2]

Tables by hardware and kernel; --platform NAME prints what applies to a machine
  kernels                      blackwell, gb300, h100 [3] [2]
  collectives/fabric           quantum-x800, default [2]
  inference/gpus               blackwell [2]
)");
}

TEST_CASE("Stack page cuts no text, writes pointers plainly and gives large numbers a prefix") {
  stack s;
  s.name = "engine";
  s.description = "made by hand";
  config::document doc =
      config::test::parsed(R"({"training": {"scan_words_per_sm": 4656520000.0, "tokens": 20000000},
    "inference": {"cells": {"b200/gpt-oss-120b": {"tpot": 0.128}}, "measured": {"b200": ["bf16", "fp8", "fp8_block",
      "nvfp4", "mxfp4", "int4", "int8", "mxfp8", "fp6", "w4a16", "w4a8"]}}})");
  doc.self = {"stack engine", "engine.json"};
  const value table = config::test::parsed(R"({"columns": ["/inference/front_end/first_token_iterations"],
    "rows": {"1.0": [3], "1.1": [4], "1.2": [5], "release-candidate-a": [6], "release-candidate-b": [7], "2": [8]}})")
                          .root;
  CHECK(stack_page(s, doc, nullptr, table) == R"(engine: made by hand

Files
  [1]  engine.json

Releases
  release                 1.0  1.1  1.2  release-candidate-a
  first_token_iterations    3    4    5                    6

  release                 release-candidate-b  2
  first_token_iterations                    7  8

training
  scan_words_per_sm  4.657 Gwords/s    [1]
  tokens                       20 M    [1]

inference/cells/b200/gpt-oss-120b
  tpot  0.128    [1]

inference/measured
  b200  bf16, fp8, fp8_block, nvfp4, mxfp4, int4, int8, mxfp8, fp6,    [1]
                                                        w4a16, w4a8
)");
}

TEST_CASE("Stack page of a machine has what is in force there") {
  platform p;
  p.gpu.name = "gb300";
  p.gpu.architecture = "blackwell";
  p.gpu.nvlink_generation = 5;
  p.fabric.name = "quantum-x800";
  const std::string text = page(&p);
  CHECK(text.find("kernels/gb300/gemm/bf16\n  launch  2 us    [2]") != std::string::npos);
  CHECK(text.find("kernels/blackwell/gemm/bf16\n  fill  2    [3]") != std::string::npos);
  CHECK(text.find("  launch  1.5 us    [3]") != std::string::npos);
  CHECK(text.find("inference/gpus/blackwell\n  layer  2    [2]") != std::string::npos);
  CHECK(text.find("4 us") != std::string::npos);
  for (const char* hidden : {"3 us", "h100", "7 us", "layer  1"}) CHECK(text.find(hidden) == std::string::npos);
}

TEST_CASE("Stack page of a framework has its releases side by side") {
  const value table =
      config::test::parsed(
          R"({"columns": ["/inference/front_end/host", "/inference/factor", "/inference/moe/factor", "/description"],
    "rows": {"1.0": ["1.2e+03 us", 1.5, 1, "one"], "1.1": [null, {"value": 2, "kind": "assumed", "source": "s"}, 3, "two"]}})")
          .root;
  CHECK(page(nullptr, table).find(R"(
Releases
  release        1.0  1.1
  host        1.2 ms    -
  factor         1.5    2
  moe/factor       1    3
)") != std::string::npos);
}

TEST_CASE("Stack page as JSON says value, kind, source and file of each member, and the whole stack") {
  stack s;
  s.name = "engine-1.0";
  const config::document doc = small_stack();
  const value page = stack_json(s, doc, nullptr);
  const value* found = nullptr;
  for (const value& m : *page.find("members")->items())
    if (*m.find("pointer") == value{"/inference/host"}) found = &m;
  REQUIRE(found);
  CHECK(*found ==
        config::test::parsed(R"({"pointer": "/inference/host", "value": "2.423e+04 us", "kind": "derived",
    "source": "where it was published", "from": "engine.json, release 1.0"})")
            .root);
  CHECK(*page.find("stack") == doc.root);
}
