#include "output/json.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "nvlsim/config/document.hpp"
#include "nvlsim/output/number.hpp"
#include "support/golden.hpp"
#include "support/steps.hpp"
#include "unit/output/samples.hpp"

namespace {

using namespace nvlsim;

value parsed(const std::string& text) {
  diagnostics problems;
  config::document doc = config::parse(text, {"test", "test.json"}, problems, config::root_type::any);
  problems.throw_if_any();
  return std::move(doc.root);
}

/// A random value of a few levels, with numbers of at most 12 digits so that they survive.
value random_value(std::mt19937_64& random, int depth) {
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  switch (pick(depth > 0 ? 7 : 5)) {
    case 0:
      return value{};
    case 1:
      return value{pick(2) == 0};
    case 2:
      return value{static_cast<std::int64_t>(random())};
    case 3: {
      const double digits = static_cast<double>(pick(999'999'999'999));
      return value{std::stod(output::number_text(digits * std::pow(10.0, static_cast<double>(pick(600)) - 300)))};
    }
    case 4: {
      std::string s;
      for (std::uint64_t n = pick(12); n > 0; --n) s += static_cast<char>(pick(128));
      return value{s + "\xC3\xA9\xF0\x9F\x98\x80"};
    }
    case 5: {
      value::array a;
      for (std::uint64_t n = pick(4); n > 0; --n) a.push_back(random_value(random, depth - 1));
      return value{std::move(a)};
    }
    default: {
      value o{value::object{}};
      for (std::uint64_t n = pick(4); n > 0; --n)
        o.set("k/~\"" + std::to_string(n), random_value(random, depth - 1));
      return o;
    }
  }
}

TEST_CASE("JSON of results is as approved") {
  const std::array<result, 2> both = {test::training_result(), test::infeasible_result()};
  test::check_golden("output/training.json", results_json(std::span(both).first(1)));
  test::check_golden("output/several.json", results_json(both));
  CHECK(results_json({}) == "[]\n");
}

TEST_CASE("JSON numbers have twelve digits and keep their type") {
  CHECK(to_json(value{1.0 / 3}, 0) == "0.333333333333\n");
  CHECK(to_json(value{2.0}, 0) == "2.0\n");
  CHECK(to_json(value{-0.0}, 0) == "0.0\n");
  CHECK(to_json(value{298013687808.0}, 0) == "298013687808.0\n");
  CHECK(to_json(value{1234567890123456.0}, 0) == "1.23456789012e+15\n");
  CHECK(to_json(value{5e-324}, 0) == "4.94065645841e-324\n");
  CHECK(to_json(value{1e300}, 0) == "1e+300\n");
  CHECK(to_json(value{std::numeric_limits<std::int64_t>::min()}, 0) == "-9223372036854775808\n");
}

TEST_CASE("JSON text read back is the same value") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const value v = random_value(random, 4);
    for (const int indent : {0, 2}) {
      const std::string text = to_json(v, indent);
      CAPTURE(text);
      REQUIRE(parsed(text) == v);
      REQUIRE(to_json(parsed(text), indent) == text);
    }
  }
}

TEST_CASE("JSON strings escape every control character and replace invalid UTF-8") {
  for (int c = 0; c < 128; ++c) {
    const std::string s(1, static_cast<char>(c));
    const std::string text = to_json(value{s}, 0);
    CAPTURE(c, text);
    for (const char x : text.substr(0, text.size() - 1)) CHECK((x >= 0x20 && x < 0x7F));
    CHECK(*parsed(text).string() == s);
  }
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(to_json(value{"a\xFFz"}, 0) == "\"a" + bad + "z\"\n");
  CHECK(to_json(value{"\xC0\x80"}, 0) == "\"" + bad + bad + "\"\n");                      // overlong
  CHECK(to_json(value{"\xED\xA0\x80"}, 0) == "\"" + bad + bad + bad + "\"\n");            // surrogate
  CHECK(to_json(value{"\xF4\x90\x80\x80"}, 0) == "\"" + bad + bad + bad + bad + "\"\n");  // beyond U+10FFFF
  CHECK(to_json(value{"end\xE2\x82"}, 0) == "\"end" + bad + bad + "\"\n");                // cut off
  CHECK(to_json(value{"\xE2\x82\xAC"}, 0) == "\"\xE2\x82\xAC\"\n");
}

TEST_CASE("JSON refuses a number that is not finite and names it") {
  for (const double d : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    result r = test::training_result();
    r.metrics.set("a/b", value::array{1.0, value::object{{"x", d}}});
    CHECK_THROWS_AS(results_json(std::span(&r, 1)), internal_error);
    CHECK_THROWS_WITH(results_json(std::span(&r, 1)), Catch::Contains("\"/metrics/a~1b/1/x\""));
  }
}

TEST_CASE("JSON schema names the members of a result") {
  const value schema = parsed(test::read_whole(NVLSIM_SOURCE_DIR "/docs/schemas/result.schema.json"));
  const value* result_type = schema.at_pointer("/$defs/result");
  REQUIRE(result_type);
  std::vector<std::string> described, required, written;
  for (const auto& m : *result_type->find("properties")->members()) described.push_back(m.first);
  for (const value& v : *result_type->find("required")->items()) required.push_back(*v.string());
  const value r = to_value(test::training_result());
  for (const auto& m : *r.members()) written.push_back(m.first);
  CHECK(described == written);
  CHECK(required == written);
  CHECK(*result_type->at_pointer("/properties/schema/const")->string() == result_schema);
  CHECK(result_type->at_pointer("/properties/status/enum")->items()->size() == 4);
}

TEST_CASE("JSON results are read back whole") {
  const std::array<result, 3> all = {test::training_result(), test::inference_result(), test::infeasible_result()};
  for (const std::size_t n : {std::size_t{1}, all.size()}) {
    const std::string text = results_json(std::span(all).first(n));
    const auto back = read_results(text, "r.json");
    REQUIRE(back.size() == n);
    CHECK(results_json(back) == text);
  }
  CHECK(holds_results(parsed(results_json(all))));
  CHECK_FALSE(holds_results(parsed("{\"schema\": \"nvlsim.scenario/1\"}")));
  CHECK_FALSE(holds_results(parsed("[]")));
}

TEST_CASE("JSON results that are wrong give every problem with its place") {
  std::array<result, 2> both = {test::training_result(), test::inference_result()};
  value all{value::array{to_value(both[0]), to_value(both[1])}};
  value& second = (*all.items())[1];
  second.set("status", "sturated");
  second.set("notes", value::array{1});
  second.set("metrics", value::object{{"mfu", "high"}});
  second.set("bands", value::object{{"mfu", value::array{1}}});
  second.set("metric", 1);
  second.set("energy", 5);
  try {
    read_results(to_json(all), "r.json");
    FAIL("accepted");
  } catch (const input_error& e) {
    CHECK(
        e.what() ==
        std::string("r.json#/1/bands: \"mfu\": expected [low, high]\n"
                    "r.json#/1/energy: expected an object, found integer\n"
                    "r.json#/1/metric: unknown member; did you mean \"metrics\"?\n"
                    "r.json#/1/metrics: \"mfu\": expected a number, null or an object of numbers\n"
                    "r.json#/1/notes: element 0: expected a string, found integer\n"
                    "r.json#/1/status: expected one of ok, saturated, infeasible, error, found \"sturated\"; did "
                    "you mean \"saturated\"?"));
  }
  CHECK_THROWS_WITH(read_results("{\"schema\": \"nvlsim.result/2\"}", "r.json"),
                    Catch::Contains("nvlsim.result/1"));
  CHECK_THROWS_AS(read_results("[1]", "r.json"), input_error);
  CHECK_THROWS_AS(read_results("3", "r.json"), input_error);
  CHECK_THROWS_AS(read_results("{", "r.json"), input_error);
}

TEST_CASE("JSON of a failure lists its problems") {
  const std::array<problem, 2> problems = {problem{"s.json", "/workload/tp", "7 does not divide 126", ""},
                                           problem{"s.json", "/modle", "unknown member", "model"}};
  const value v = error_value(exit_code::bad_input, "two problems", problems);
  test::check_golden("output/error.json", to_json(v));
}

TEST_CASE("Writing JSON takes time in proportion to it") {
  CHECK(test::grows_in_proportion(10'000, [](std::size_t n) {
    std::mt19937_64 random(1);
    value::array a;
    for (std::size_t i = 0; i < n; ++i)
      a.push_back(value::object{{"id", static_cast<std::int64_t>(i)},
                                {"time_s", static_cast<double>(random()) * 1e-19},
                                {"name", "a request"}});
    return [n, v = value{std::move(a)}] { CHECK(to_json(v).size() > 50 * n); };
  }));
}

}  // namespace
