#include "nvlsim/analysis/input_changes.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/config/document.hpp"

using namespace nvlsim;
using analysis::changed_inputs;

namespace {

/// The inputs of a small result, with some text replaced.
value inputs(std::initializer_list<std::pair<const char*, const char*>> replaced = {}) {
  std::string text = R"({
    "digest": "d0",
    "scenario": {"name": "s", "description": "one", "platform": {"use": "gb300-nvl72", "racks": 1}, "stack": "bridge", "model": "llama",
                 "workload": {"kind": "training", "tp": 4, "recompute": ["mlp"]}},
    "platform": {"sources": {"x": "y"}, "gpu": {"tdp": {"value": "1.4 kW", "kind": "vendor", "source": "x"}, "sm_count": 148}},
    "stack": {"name": "bridge", "digest": "s0", "parameters": {"training": {"tp_exposed": 0.5}, "kernels": {"gb300": {"launch": "2 us"}}}},
    "model": {"hidden_size": 64}})";
  for (const auto& [from, to] : replaced) {
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), std::string(from).size(), to);
  }
  return config::parse_scalar(text);
}

std::vector<std::string> pointers(const value& a, const value& b) {
  std::vector<std::string> out;
  for (const auto& i : changed_inputs(a, b)) out.push_back(i.pointer);
  return out;
}
using texts = std::vector<std::string>;

}  // namespace

TEST_CASE("Changed inputs are named as --set names them") {
  CHECK(changed_inputs(inputs(), inputs()).empty());
  const auto changes = changed_inputs(inputs(), inputs({{"\"tp\": 4", "\"tp\": 2"}}));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].pointer == "/workload/tp");
  CHECK(changes[0].a == value{4});
  CHECK(changes[0].b == value{2});
  CHECK(pointers(inputs(), inputs({{"1.4 kW", "1.2 kW"}})) == texts{"/platform/gpu/tdp"});
  CHECK(pointers(inputs(), inputs({{"\"hidden_size\": 64", "\"hidden_size\": 65"}})) ==
        texts{"/model/hidden_size"});
  CHECK(pointers(inputs(), inputs({{"\"racks\": 1", "\"racks\": 2"}, {"[\"mlp\"]", "\"none\""}})) ==
        texts{"/platform/racks", "/workload/recompute"});
  CHECK(pointers(inputs(), inputs({{"\"training\", \"tp\"", "\"inference\", \"tp\""}})) ==
        texts{"/workload/kind"});
}

TEST_CASE("Changed inputs have null where a side has nothing") {
  const auto changes = changed_inputs(inputs(), inputs({{"\"tp\": 4", "\"pp\": 4"}}));
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].pointer == "/workload/tp");
  CHECK(changes[0].b.is_null());
  CHECK(changes[1].pointer == "/workload/pp");
  CHECK(changes[1].a.is_null());
}

TEST_CASE("Names, descriptions and sources are no changed inputs") {
  CHECK(changed_inputs(inputs(), inputs({{"\"name\": \"s\"", "\"name\": \"t\""},
                                         {"\"one\"", "\"two\""},
                                         {"\"vendor\"", "\"assumed\""},
                                         {"{\"x\": \"y\"}", "{\"x\": \"z\"}"},
                                         {"d0", "d0"}}))
            .empty());
}

TEST_CASE("Another platform or stack is one changed input") {
  CHECK(pointers(inputs(), inputs({{"gb300-nvl72", "gb200-nvl72"}, {"1.4 kW", "1.2 kW"}})) ==
        texts{"/platform/use"});
  CHECK(
      pointers(inputs(), inputs({{"\"stack\": \"bridge\"", "\"stack\": \"lm\""}, {"s0", "s1"}, {"0.5", "0.6"}})) ==
      texts{"/stack"});
}

TEST_CASE("A changed stack is told by its parameters, else by its digest") {
  CHECK(pointers(inputs(), inputs({{"s0", "s1"}, {"0.5", "0.505"}})) == texts{"/stack/training/tp_exposed"});
  CHECK(pointers(inputs(), inputs({{"s0", "s1"}})) == texts{"/stack/digest"});
  // The same file of which other entries apply to another machine.
  const std::pair<const char*, const char*> other_gpu{"\"gb300\":", "\"gb200\":"},
      other_use{"gb300-nvl72", "gb200-nvl72"};
  CHECK(pointers(inputs(), inputs({other_use, other_gpu})) == texts{"/platform/use"});
  CHECK(pointers(inputs(), inputs({other_use, other_gpu, {"s0", "s1"}, {"0.5", "0.6"}})) ==
        texts{"/platform/use", "/stack/training/tp_exposed"});
}

TEST_CASE("Results without detail differ by their digest") {
  const auto only = [](const char* digest) { return value{value::object{{"digest", digest}}}; };
  CHECK(pointers(only("a"), only("b")) == texts{"/digest"});
  CHECK(changed_inputs(only("a"), only("a")).empty());
  CHECK(changed_inputs(value{}, value{}).empty());
}
