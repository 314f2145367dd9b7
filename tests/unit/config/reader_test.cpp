#include "nvlsim/config/reader.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "support/foreign_locale.hpp"
#include "support/steps.hpp"
#include "unit/config/texts.hpp"

using namespace nvlsim;
using namespace nvlsim::config;
using nvlsim::config::test::parsed;
using nvlsim::config::test::text_of;

namespace {

/// Reads a text with `use(reader)` and returns the problems.
template <class Use>
std::string problems_of(std::string_view text, Use use) {
  document doc = parsed(text);
  diagnostics problems;
  reader r(doc, problems);
  use(r);
  return text_of(problems);
}

const std::vector<std::string> schedules = {"1f1b", "interleaved", "dualpipe"};

}  // namespace

TEST_CASE("Reader gives members as they are typed") {
  document doc =
      parsed(R"({"s": "text", "i": 3, "n": 2.5, "whole": 2, "b": true, "q": "900 GB/s", "e": "interleaved",
                            "c": {"x": 1}, "l": [{"x": 1}, {"x": 2}], "t": {"one": {"x": 1}, "two": {"x": 2}, "no": null}})");
  diagnostics problems;
  reader r(doc, problems);
  CHECK(r.string("s") == "text");
  CHECK(r.integer("i") == 3);
  CHECK(r.number("n") == 2.5);
  CHECK(r.number("whole") == 2);
  CHECK(r.boolean("b"));
  CHECK(r.quantity<bandwidth>("q") == 900.0_GBps);
  CHECK(r.one_of("e", schedules) == 1);
  CHECK(r.child("c").integer("x") == 1);
  auto elements = r.elements("l");
  REQUIRE(elements.size() == 2);
  CHECK(elements[1].integer("x") == 2);
  CHECK(elements[1].pointer() == "/l/1");
  auto children = r.children("t");
  REQUIRE(children.size() == 2);
  CHECK(children[1].first == "two");
  CHECK(children[1].second.integer("x") == 2);
  CHECK(children[1].second.pointer() == "/t/two");
  CHECK(r.child("t").names() == std::vector<std::string>{"one", "two", "no"});
  r.done();
  CHECK(text_of(problems) == "");
}

TEST_CASE("Reader reports members that nobody asked for, with the nearest known one") {
  CHECK(problems_of(R"({"hbm_bandwith": 1, "zzzzzzzz": 2, "": 3, "a/b": 4, "note": 5})",
                    [](reader& r) {
                      r.find_integer("hbm_bandwidth");
                      r.ignore("note");
                      r.done();
                    }) ==
        "f.json#/: unknown member\n"
        "f.json#/a~1b: unknown member\n"
        "f.json#/hbm_bandwith: unknown member; did you mean \"hbm_bandwidth\"?\n"
        "f.json#/zzzzzzzz: unknown member\n");
}

TEST_CASE("Reader says whose a member is that other kinds have, and takes null for absent") {
  CHECK(
      problems_of(R"({"file": "a", "requests": 1, "num_clients": 2, "tick": null, "prefill": null, "rate": null})",
                  [](reader& r) {
                    r.integer("requests");
                    CHECK_FALSE(r.has("prefill"));
                    CHECK_FALSE(r.has({"requests_per_s", {"rate"}}));
                    for (const char* k : {"file", "tick"}) r.belongs(k, "traces");
                    r.belongs({"clients", {"num_clients"}}, "closed loops");
                    r.belongs("requests", "traces");  // read already: this kind has it too
                    r.done();
                  }) ==
      "f.json#/file: is a member of traces\n"
      "f.json#/num_clients: is a member of closed loops\n");
}

TEST_CASE("Reader reports every missing member at its object, and goes on") {
  CHECK(problems_of(R"({"c": {}, "null": null})",
                    [](reader& r) {
                      CHECK(r.string("s") == "");
                      CHECK(r.integer("null", positive_int) == 1);
                      reader c = r.child("c");
                      CHECK(c.number("n", positive) > 0);
                      CHECK(c.quantity<bytes>("q") == bytes());
                      CHECK_FALSE(c.boolean("b"));
                      CHECK(c.one_of("e", schedules) == 0);
                      CHECK(c.elements("l").empty());
                      CHECK(c.children("t").empty());
                      reader missing = c.child("child");
                      CHECK(missing.string("silent") == "");  // its parent's absence is enough
                      CHECK(missing.child("silent too").integer("x") == 0);
                      missing.done();
                    }) ==
        "f.json#: required member \"null\" is missing\n"
        "f.json#: required member \"s\" is missing\n"
        "f.json#/c: required member \"b\" is missing\n"
        "f.json#/c: required member \"child\" is missing\n"
        "f.json#/c: required member \"e\" is missing\n"
        "f.json#/c: required member \"l\" is missing\n"
        "f.json#/c: required member \"n\" is missing\n"
        "f.json#/c: required member \"q\" is missing\n"
        "f.json#/c: required member \"t\" is missing\n");
}

TEST_CASE("Reader reports wrong types") {
  CHECK(problems_of(
            R"({"s": 1, "i": "1", "j": 4.0, "n": true, "b": "yes", "e": 1, "c": [1], "l": {}, "m": [{}, 2.5, null],
                        "t": {"x": "text"}, "big": 1e22})",
            [](reader& r) {
              r.string("s");
              r.integer("i");
              r.integer("j");
              r.integer("big");
              r.number("n");
              r.boolean("b");
              r.one_of("e", schedules);
              r.child("c").string("silent");
              r.elements("l");
              CHECK(r.elements("m").size() == 1);
              CHECK(r.children("t").empty());
            }) ==
        "f.json#/b: expected true or false, found string \"yes\"\n"
        "f.json#/big: expected an integer, found number 1e+22\n"
        "f.json#/c: expected an object, found array\n"
        "f.json#/e: expected one of 1f1b, interleaved, dualpipe, found integer 1\n"
        "f.json#/i: expected an integer, found string \"1\"\n"
        "f.json#/j: expected an integer, found number 4.0\n"
        "f.json#/l: expected an array, found object\n"
        "f.json#/m/1: expected an object, found number 2.5\n"
        "f.json#/m/2: expected an object, found null\n"
        "f.json#/n: expected a number, found boolean\n"
        "f.json#/s: expected a string, found integer 1\n"
        "f.json#/t/x: expected an object, found string \"text\"\n");
}

TEST_CASE("Reader reports quantities without a unit, of the wrong one, and out of range") {
  CHECK(problems_of(
            R"({"a": 900, "b": "900", "c": "900 GB", "d": "fast", "e": "-1 s", "f": "0 s", "g": "5 s", "h": "1 ms",
                        "ok": "-5 s"})",
            [](reader& r) {
              CHECK(r.quantity<bandwidth>("a") == bandwidth());
              r.quantity<bandwidth>("b");
              r.quantity<bandwidth>("c");
              r.find_quantity<bandwidth>("d");
              r.quantity<seconds>("e");
              r.quantity<seconds>("f", positive);
              r.quantity<seconds>("g", {0, 2});
              r.quantity<seconds>("h", {0.5, 2});
              CHECK(r.quantity<seconds>("ok", {-10, 10}).base() == -5);
              CHECK_FALSE(r.find_quantity<seconds>("absent"));
            }) ==
        "f.json#/a: expected a bandwidth such as \"900 GB/s\", found integer 900\n"
        "f.json#/b: \"900\" has no unit; expected a bandwidth such as \"900 GB/s\"\n"
        "f.json#/c: \"900 GB\" is a size; expected a bandwidth such as \"900 GB/s\"\n"
        "f.json#/d: expected a bandwidth such as \"900 GB/s\", found \"fast\"\n"
        "f.json#/e: \"-1 s\" is negative\n"
        "f.json#/f: \"0 s\" is zero\n"
        "f.json#/g: \"5 s\" is more than 2 s\n"
        "f.json#/h: \"1 ms\" is less than 500 ms\n");
}

TEST_CASE("Reader reports numbers out of range and returns harmless ones") {
  CHECK(problems_of(R"({"i": 0, "j": 9, "n": 1.5, "m": -0.5, "p": 0})",
                    [](reader& r) {
                      CHECK(r.integer("i", positive_int) == 1);
                      CHECK(r.integer("j", {0, 8}) == 0);
                      CHECK(r.number("n", fraction) == 0);
                      CHECK(r.number("m", non_negative) == 0);
                      CHECK(r.number("p", positive) == 1);
                    }) ==
        "f.json#/i: 0 is less than 1\n"
        "f.json#/j: 9 is more than 8\n"
        "f.json#/m: -0.5 is less than 0\n"
        "f.json#/n: 1.5 is more than 1\n"
        "f.json#/p: 0 is not more than 0\n");
}

TEST_CASE("Reader reports a name outside a list with the nearest one") {
  CHECK(problems_of(R"({"e": "interleavd", "f": "gpipe"})",
                    [](reader& r) {
                      CHECK(r.one_of("e", schedules) == 0);
                      r.one_of_or("f", schedules, 1);
                    }) ==
        "f.json#/e: expected one of 1f1b, interleaved, dualpipe, found \"interleavd\"; did you mean "
        "\"interleaved\"?\n"
        "f.json#/f: expected one of 1f1b, interleaved, dualpipe, found \"gpipe\"\n");
}

TEST_CASE("Reader accepts an alias, and refuses two names for one thing") {
  const key tp{"tp", {"tensor_model_parallel_size", "tensor_parallel"}};
  CHECK(problems_of(R"({"tensor_model_parallel_size": 4, "tp": null})", [&](reader& r) {
          CHECK(r.has(tp));
          CHECK(r.integer(tp) == 4);
          r.done();
        }) == "");
  CHECK(problems_of(R"({"tensor_model_parallel_size": 0})", [&](reader& r) { r.integer(tp, positive_int); }) ==
        "f.json#/tensor_model_parallel_size: 0 is less than 1\n");
  CHECK(problems_of(R"({"tp": 2, "tensor_parallel": 2, "tensor_model_parallel_size": 4})",
                    [&](reader& r) {
                      CHECK(r.integer(tp) == 2);
                      r.done();
                    }) ==
        "f.json#/tensor_model_parallel_size: says the same as \"tp\"; give one of them\n"
        "f.json#/tensor_parallel: says the same as \"tp\"; give one of them\n");
}

TEST_CASE("An override replaces what the file says in another spelling") {
  const key tp{"tp", {"tensor_parallel", "tensor_model_parallel_size"}};
  for (const char* in_file : {"tp", "tensor_parallel", "tensor_model_parallel_size"})
    for (const char* set : {"tp", "tensor_parallel", "tensor_model_parallel_size"}) {
      INFO(in_file << " " << set);
      document doc = parsed("{\"" + std::string(in_file) + "\": 2}");
      diagnostics problems;
      override_value(doc, "/" + std::string(set), value{4}, {"--set", "--set", true}, problems);
      reader r(doc, problems);
      CHECK(r.has(tp));
      CHECK(r.integer(tp) == 4);
      r.done();
      CHECK(problems.empty());
      REQUIRE(doc.resolved().members()->size() == 1);
      CHECK(*doc.resolved().find(set) == value{4});
    }
  document doc = parsed("{}");
  diagnostics problems;
  for (const char* set : {"/tp", "/tensor_parallel"})
    override_value(doc, set, value{4}, {"--set", "--set", true}, problems);
  reader r(doc, problems);
  r.integer(tp);
  CHECK_FALSE(problems.empty());
}

TEST_CASE("Reader records the defaults it took, under the canonical name") {
  document doc = parsed(R"({"given": 1, "c": {}})");
  diagnostics problems;
  reader r(doc, problems);
  CHECK(r.integer_or("given", 7) == 1);
  CHECK(r.integer_or({"i", {"alias"}}, 7) == 7);
  CHECK(r.number_or("n", 2.5) == 2.5);
  CHECK(r.string_or("s", "text") == "text");
  CHECK(r.boolean_or("b", true));
  CHECK(r.child("c").one_of_or("e", schedules, 2) == 2);
  CHECK_FALSE(r.find_integer("nothing"));
  CHECK_FALSE(r.find_child("nothing"));
  r.done();
  CHECK(text_of(problems) == "");
  CHECK(doc.resolved() ==
        parsed(R"({"given": 1, "c": {"e": "dualpipe"}, "i": 7, "n": 2.5, "s": "text", "b": true})").root);
}

TEST_CASE("Reader with sources accepts a number with its source and records it") {
  document doc = parsed(R"({"sources": {"ds": "The data sheet, page 3"},
    "gpu": {"hbm": {"value": "8 TB/s", "kind": "vendor", "source": "ds", "note": "n"},
            "sms": {"value": 160, "kind": "measured", "source": "a paper"},
            "group": {"kind": "assumed", "source": "ds", "a": 0.5, "b": "1 us", "t": {"x": {"n": 1}}}}})");
  diagnostics problems;
  reader r(doc, problems);
  r.ignore("sources");
  reader gpu = r.child("gpu");
  gpu.require_sources();
  CHECK(gpu.quantity<bandwidth>("hbm") == bandwidth::from_base(8e12));
  CHECK(gpu.integer("sms") == 160);
  reader group = gpu.child("group");
  CHECK(group.number("a") == 0.5);
  CHECK(group.quantity<seconds>("b") == 1.0_us);
  for (auto& [name, child] : group.children("t")) CHECK(child.integer("n") == 1);
  group.done();
  gpu.done();
  r.done();
  CHECK(text_of(problems) == "");
  std::string recorded;
  for (const provenance& p : doc.sources)
    recorded += p.pointer + " " + p.text + " " + p.kind + " " + p.source + "\n";
  CHECK(recorded ==
        "/gpu/hbm 8 TB/s vendor The data sheet, page 3\n"
        "/gpu/sms 160 measured a paper\n"
        "/gpu/group/a 0.5 assumed The data sheet, page 3\n"
        "/gpu/group/b 1 us assumed The data sheet, page 3\n"
        "/gpu/group/t/x/n 1 assumed The data sheet, page 3\n");
}

TEST_CASE("Reader of a group of groups does not take the source for a member") {
  document doc = parsed(R"({"t": {"kind": "vendor", "source": "s", "one": {"x": 1}}})");
  diagnostics problems;
  reader r(doc, problems);
  r.require_sources();
  auto children = r.children("t");
  REQUIRE(children.size() == 1);
  CHECK(children[0].second.integer("x") == 1);
  CHECK(text_of(problems) == "");
}

TEST_CASE("Reader with sources reports numbers without one") {
  CHECK(problems_of(R"({"a": 1, "b": {"value": 2}, "c": {"value": 3, "kind": "guessed", "source": "s"},
                        "d": {"value": 4, "kind": "vendor", "source": "s", "notes": 1}, "e": {"kind": "vendor", "source": "s"},
                        "g": {"kind": "venor", "source": "s", "x": 1, "y": 2}, "h": {"value": null, "kind": "vendor", "source": "s"}})",
                    [](reader& r) {
                      r.require_sources();
                      for (const char* k : {"a", "b", "c", "d", "e", "h"}) r.number(k);
                      reader g = r.child("g");
                      g.number("x");
                      g.number("y");
                      g.done();
                    }) ==
        "f.json#/a: a number here needs its source: {\"value\": ..., \"kind\": ..., \"source\": ...}\n"
        "f.json#/b: required member \"kind\" is missing\n"
        "f.json#/b: required member \"source\" is missing\n"
        "f.json#/c/kind: expected one of measured, vendor, derived, assumed, found \"guessed\"\n"
        "f.json#/d/notes: unknown member; did you mean \"note\"?\n"
        "f.json#/e: expected a value or {\"value\": ..., \"kind\": ..., \"source\": ...}, found object\n"
        "f.json#/g/kind: expected one of measured, vendor, derived, assumed, found \"venor\"; did you mean "
        "\"vendor\"?\n"
        "f.json#/h: expected a number, found null\n");
}

TEST_CASE("Reader takes an overridden number as the user's assumption") {
  document doc = parsed(R"({"g": {"kind": "vendor", "source": "s", "x": 1, "y": 1}, "bare": 1,
                            "full": {"value": 1, "kind": "vendor", "source": "s"}})");
  diagnostics problems;
  for (const char* pointer : {"/g/x", "/bare", "/full", "/new"})
    override_value(doc, pointer, value{2}, {"--set", "--set"}, problems);
  reader r(doc, problems);
  r.require_sources();
  reader g = r.child("g");
  CHECK(g.number("x") == 2);
  CHECK(g.number("y") == 1);
  for (const char* k : {"bare", "full", "new"}) CHECK(r.number(k) == 2);
  CHECK(text_of(problems) == "");
  std::string recorded;
  for (const provenance& p : doc.sources)
    recorded += p.pointer + " " + p.text + " " + p.kind + " " + p.source + "\n";
  CHECK(recorded ==
        "/g/x 2 assumed set by the user\n"
        "/g/y 1 vendor s\n"
        "/bare 2 assumed set by the user\n"
        "/full 2 assumed set by the user\n"
        "/new 2 assumed set by the user\n");
}

TEST_CASE("Reader blames the origin of the value that is wrong") {
  document doc = parsed(R"({"tp": 2, "pp": 0})");
  diagnostics problems;
  override_value(doc, "/tp", value{0}, {"--set", "--set"}, problems);
  override_value(doc, "/ttp", value{0}, {"--set", "--set"}, problems);
  reader r(doc, problems);
  r.integer("tp", positive_int);
  r.integer("pp", positive_int);
  r.fail("pp", "is odd", "even");
  r.fail("", "is wrong as a whole");
  r.done();
  CHECK(text_of(problems) ==
        "--set#/tp: 0 is less than 1\n"
        "--set#/ttp: unknown member; did you mean \"tp\"?\n"
        "f.json#: is wrong as a whole\n"
        "f.json#/pp: 0 is less than 1\n"
        "f.json#/pp: is odd; did you mean \"even\"?\n");
}

TEST_CASE("Reader of a root that is no object is silent: parsing has said so") {
  diagnostics problems;
  document doc;
  reader r(doc, problems);
  CHECK(r.string("x") == "");
  CHECK(r.integer_or("i", 3) == 3);
  CHECK_FALSE(r.has("x"));
  CHECK(r.children("t").empty());
  r.done();
  CHECK(problems.empty());
  CHECK(doc.defaults.empty());
}

TEST_CASE("Reading many members takes time in proportion to them") {
  CHECK(nvlsim::test::grows_in_proportion(10'000, [](std::size_t n) {
    std::string text = "{\"table\": {";
    for (std::size_t i = 0; i < n; ++i) text += "\"a_rather_long_member_name_" + std::to_string(i) + "\": {},";
    text.back() = '}';
    return [n, doc = parsed(text + "}")]() mutable {
      diagnostics problems;
      reader r(doc, problems);
      CHECK(r.children("table").size() == n);
      reader table = r.child("table");
      table.ignore("hbm_bandwidth");
      table.done();
      CHECK(problems.sorted().size() == n);
    };
  }));
}

TEST_CASE("Reader messages do not depend on the locale") {
  const nvlsim::test::foreign_locale german;
  CHECK(problems_of(R"({"n": 1234.5, "i": 1234567})",
                    [](reader& r) {
                      r.number("n", fraction);
                      r.integer("i", {0, 10});
                    }) ==
        "f.json#/i: 1234567 is more than 10\n"
        "f.json#/n: 1234.5 is more than 1\n");
}
