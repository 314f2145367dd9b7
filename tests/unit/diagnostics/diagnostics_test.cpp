#include "nvlsim/diagnostics/diagnostics.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "support/steps.hpp"

using namespace nvlsim;

TEST_CASE("Problem reads as file, pointer, sentence and hint") {
  CHECK(problem{"a.json", "/gpu/x", "unknown member", "y"}.text() ==
        "a.json#/gpu/x: unknown member; did you mean \"y\"?");
  CHECK(problem{"a.json", "", "too large", ""}.text() == "a.json#: too large");
  CHECK(problem{"", "", "no scenario was given", ""}.text() == "no scenario was given");
  CHECK(problem{"", "/tp", "is odd", ""}.text() == "#/tp: is odd");
}

TEST_CASE("Problem stays on one line whatever the input holds") {
  CHECK(problem{"a.json", "/x\ny", "found \"\x1b[31m\r\"", ""}.text() == "a.json#/x?y: found \"?[31m?\"");
  CHECK(problem{"\u00e9.json", "", "odd", ""}.text() == "\u00e9.json#: odd");
}

TEST_CASE("Diagnostics sort by file and pointer and say each thing once") {
  diagnostics d;
  CHECK(d.empty());
  d.add("b.json", "/a", "wrong");
  d.add("a.json", "/z", "wrong");
  d.add("a.json", "/a", "worse");
  d.add("a.json", "/a", "bad", "good");
  d.add("a.json", "/a", "worse");
  CHECK_FALSE(d.empty());
  std::string all;
  for (const problem& p : d.sorted()) all += p.text() + "\n";
  CHECK(all ==
        "a.json#/a: bad; did you mean \"good\"?\n"
        "a.json#/a: worse\n"
        "a.json#/z: wrong\n"
        "b.json#/a: wrong\n");
}

TEST_CASE("Diagnostics sort lines and elements by their numbers") {
  diagnostics d;
  for (const char* line : {"line 10: wrong", "line 9: wrong", "line 1: wrong", "line: wrong"})
    d.add("a.csv", "", line);
  for (const char* element : {"/x/10", "/x/9/a", "/x/9"}) d.add("a.json", element, "wrong");
  std::string all;
  for (const problem& p : d.sorted()) all += p.text() + "\n";
  CHECK(all ==
        "a.csv#: line 1: wrong\n"
        "a.csv#: line 9: wrong\n"
        "a.csv#: line 10: wrong\n"
        "a.csv#: line: wrong\n"
        "a.json#/x/9: wrong\n"
        "a.json#/x/9/a: wrong\n"
        "a.json#/x/10: wrong\n");
}

TEST_CASE("A file that cannot be read among the problems decides the exit code") {
  const problem wrong{"a.json", "/x", "wrong", {}}, absent{{}, {}, "b.json: no such file", {}, true};
  CHECK(input_error({wrong}).code() == exit_code::bad_input);
  CHECK(input_error({wrong, absent}).code() == exit_code::io);
}

TEST_CASE("Diagnostics throw all problems at once, and nothing without one") {
  diagnostics d;
  CHECK_NOTHROW(d.throw_if_any());
  d.add("b.json", "/b", "two");
  d.add("a.json", "/a", "one");
  try {
    d.throw_if_any();
    FAIL("did not throw");
  } catch (const input_error& e) {
    CHECK(std::string(e.what()) == "a.json#/a: one\nb.json#/b: two");
    REQUIRE(e.problems().size() == 2);
    CHECK(e.problems()[0].file == "a.json");
  }
}

TEST_CASE("Nearest name is offered for a slip only") {
  const std::vector<std::string> names = {"hbm_bandwidth", "hbm_capacity", "tp", "pp", "racks", "seq_length"};
  CHECK(nearest("hbm_bandwith", names) == "hbm_bandwidth");    // a letter is missing
  CHECK(nearest("hbm_bandwidhtt", names) == "hbm_bandwidth");  // swapped, and one too many
  CHECK(nearest("rack", names) == "racks");
  CHECK(nearest("sequence_length", names) == "seq_length");  // five letters of fifteen
  CHECK(nearest("TP", names) == "tp");
  CHECK(nearest("tpp", names) == "tp");
  CHECK(nearest("xx", names) == "");
  CHECK(nearest("dog", std::vector<std::string>{"dam"}) == "");
  CHECK(nearest("temperature", names) == "");
  CHECK(nearest("", names) == "");
  CHECK(nearest("tp", {}) == "");
}

TEST_CASE("Nearest name of equal distance is one that only lacks letters or has more, else the first") {
  CHECK(nearest("xp", std::vector<std::string>{"tp", "pp", "dp"}) == "tp");
  CHECK(nearest("llama3-405b", std::vector<std::string>{"llama3-70b", "llama3.1-405b", "llama3.1-70b"}) ==
        "llama3.1-405b");
  CHECK(nearest("nccl-2.299", std::vector<std::string>{"nccl-2.199", "nccl-2.29", "nccl-2.298"}) == "nccl-2.29");
  CHECK(nearest("fp4", std::vector<std::string>{"bf16", "fp8", "fp8_block", "nvfp4", "mxfp4", "int4"}) == "nvfp4");
  CHECK(nearest("engine-1.3", std::vector<std::string>{"engine-1.0", "engine-1.1", "engine-1.2",
                                                       "engine-1.2rc"}) == "engine-1.2");  // the nearest number
  CHECK(nearest("abc", std::vector<std::string>{"abcde"}) == "");  // as far as it may be is still too far
}

TEST_CASE("Nearest name to an absurdly long one is looked for without comparing letters") {
  const std::string absurd(1 << 20, 'x');
  const auto steps_with = [&](std::size_t names) {
    const std::vector<std::string> all(names, "hbm_bandwidth");
    return test::steps_of([&] { CHECK(nearest(absurd, all) == ""); });
  };
  const std::int64_t alone = steps_with(0);
  CHECK(alone > 0);
  CHECK(steps_with(1000) < alone + 1000 * 1000);  // letter by letter: millions a name
}
