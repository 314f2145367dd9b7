#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "support/foreign_locale.hpp"
#include "support/steps.hpp"
#include "unit/config/texts.hpp"

using namespace nvlsim;
using namespace nvlsim::config;
using nvlsim::config::test::parsed;
using nvlsim::config::test::scratch_folder;
using nvlsim::config::test::text_of;

namespace {

std::string problems_of(std::string_view text) {
  diagnostics problems;
  parse(text, {"file", "f.json"}, problems);
  return text_of(problems);
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

}  // namespace

TEST_CASE("Document keeps types, order and text") {
  const document d =
      parsed(R"({"z": null, "b": true, "i": -3, "n": 2.5, "e": 1e3, "s": "a\u00e9\n", "l": [1, {"x": {}}]})");
  CHECK(d.root.members()->front().first == "z");
  CHECK(d.root.find("z")->is_null());
  CHECK(*d.root.find("b") == value{true});
  CHECK(*d.root.find("i") == value{-3});
  CHECK(*d.root.find("n") == value{2.5});
  CHECK(*d.root.find("e") == value{1000.0});
  CHECK(*d.root.find("s") == value{"a\u00e9\n"});
  CHECK(d.root.at_pointer("/l/1/x")->members()->empty());
}

TEST_CASE("Document keeps integers of 64 bits and turns larger ones into numbers") {
  const document d =
      parsed(R"({"max": 9223372036854775807, "min": -9223372036854775808, "more": 18446744073709551615})");
  CHECK(*d.root.find("max")->integer() == std::numeric_limits<std::int64_t>::max());
  CHECK(*d.root.find("min")->integer() == std::numeric_limits<std::int64_t>::min());
  CHECK(*d.root.find("more")->number() == 18446744073709551615.0);
}

TEST_CASE("Document syntax errors name line, column and remedy") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1, column 1: the text is empty"},
      {" \n ", "line 2, column 2: the text is empty"},
      {"{\"a\":1,}",
       "line 1, column 8: expected a name in double quotes, found \"}\"; remove the comma before it"},
      {"{\"a\": [1,\n ]}", "line 2, column 2: expected a value, found \"]\"; remove the comma before it"},
      {"{\"a\" 1}", "line 1, column 6: expected \":\" after the name, found \"1\""},
      {"{\"a\":1\n \"bcd\":2}", "line 2, column 2: expected \",\" or \"}\", found \"bcd\""},
      {"{\"a\":[1 2]}", "line 1, column 9: expected \",\" or \"]\", found \"2\""},
      {"{\"a\":[1, 2}", "line 1, column 11: expected \",\" or \"]\", found \"}\""},
      {"{'a':1}", "line 1, column 2: expected a name in double quotes, found \"'\"; strings take double quotes"},
      {"{abc:1}", "line 1, column 2: expected a name in double quotes, found \"abc\""},
      {"{\"a\":abc}", "line 1, column 6: expected a value, found \"abc\"; strings take double quotes"},
      {"{\"a\":tru}", "line 1, column 6: expected a value, found \"tru\"; strings take double quotes"},
      {"{\"a\":True}", "line 1, column 6: expected a value, found \"True\"; true and false take lower case"},
      {"{\"a\":None}", "line 1, column 6: expected a value, found \"None\"; an absent value is written null"},
      {"{\"a\":NaN}", "line 1, column 6: expected a value, found \"NaN\"; JSON has no NaN and no infinity"},
      {"{\"a\":+1}", "line 1, column 6: expected a value, found \"+1\"; a number begins with a digit or \"-\""},
      {"{\"a\":.5}", "line 1, column 6: expected a value, found \".5\"; a number begins with a digit or \"-\""},
      {"{\"a\":01}", "line 1, column 6: a number must not begin with 0"},
      {"{\"a\":1.}", "line 1, column 8: a digit is missing in a number"},
      {"{\"a\":-x}", "line 1, column 7: a digit is missing in a number"},
      {"{\"a\":1e400}", "line 1, column 6: a number is out of range"},
      {"{\"a\":\"abc\n\"}", "line 1, column 10: a string holds a line break; write \\n"},
      {"{\"a\":\"x\ty\"}", "line 1, column 8: a string holds a tab; write \\t"},
      {"{\"a\":\"\x01\"}",
       "line 1, column 7: a string holds a control character; write it as \\u and four hex digits"},
      {"{\"a\":\"abc", "line 1, column 6: a string has no closing quote"},
      {"{\"a\":\"\\q\"}", "line 1, column 8: a backslash stands before \" \\ / b f n r t u only"},
      {"{\"a\":\"\\u12\"}", "line 1, column 11: \\u needs four hex digits"},
      {"{\"a\":\"\\ud800\"}", "line 1, column 13: \\u names half of a surrogate pair"},
      {"{\"a\":\"\xff\"}", "line 1, column 7: the text is not UTF-8"},
      {"\xef\xbb{}", "line 1, column 3: the text is not UTF-8"},
      {"{\"a\":1", "line 1, column 7: the text ends too early; expected \",\" or \"}\""},
      {"{\"a\":[1\n", "line 2, column 1: the text ends too early; expected \",\" or \"]\""},
      {"{", "line 1, column 2: the text ends too early; expected a name in double quotes"},
      {"{\"a\"", "line 1, column 5: the text ends too early; expected \":\" after the name"},
      {"{\"a\":", "line 1, column 6: the text ends too early; expected a value"},
      {"{\"a\":}", "line 1, column 6: expected a value, found \"}\""},
      {"{} x", "line 1, column 4: unexpected \"x\" after the end of the document"},
      {"{}}", "line 1, column 3: unexpected \"}\" after the end of the document"},
      {"{\"a\":1}\n{\"b\":2}", "line 2, column 1: unexpected \"{\" after the end of the document"},
      {"// note\n{}", "line 1, column 1: expected a value, found \"/\"; JSON has no comments"},
      {"{\n  # note\n}", "line 2, column 3: expected a name in double quotes, found \"#\"; JSON has no comments"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK(problems_of(text) == "f.json#: " + message + "\n");
  }
}

TEST_CASE("Document duplicate keys are all reported by pointer") {
  CHECK(problems_of(R"({"a": 1, "b": {"x": [{"k~": 1, "k~": 2}], "y": 1, "y": 1}, "a": 2})") ==
        "f.json#/a: duplicate key\n"
        "f.json#/b/x/0/k~0: duplicate key\n"
        "f.json#/b/y: duplicate key\n");
  CHECK(problems_of(R"({"a": {"x": 1}, "b": {"x": 1}})") == "");
}

TEST_CASE("Document depth is limited, however deep the text") {
  CHECK(problems_of("{\"a\":" + nested(max_document_depth - 1) + "}") == "");
  CHECK(problems_of("{\"a\":" + nested(max_document_depth) + "}") == "f.json#: nested deeper than 64 levels\n");
  CHECK(problems_of(std::string(10'000'000, '[')) == "f.json#: nested deeper than 64 levels\n");
}

TEST_CASE("Document root must be an object unless any value will do") {
  CHECK(problems_of("[1]") == "f.json#: expected an object, found array\n");
  CHECK(problems_of("null") == "f.json#: expected an object, found null\n");
  diagnostics problems;
  CHECK(parse("[1]", {}, problems, root_type::any).root.items()->size() == 1);
  CHECK(problems.empty());
}

TEST_CASE("Parsing a document takes time in proportion to its members") {
  CHECK(nvlsim::test::grows_in_proportion(10'000, [](std::size_t n) {
    std::string text = "{";
    for (std::size_t i = 0; i < n; ++i) text += "\"a_rather_long_member_name_" + std::to_string(i) + "\": 1,";
    text.back() = '}';
    return [n, text] { CHECK(parsed(text).root.members()->size() == n); };
  }));
}

TEST_CASE("Document numbers do not depend on the locale") {
  const nvlsim::test::foreign_locale german;
  CHECK(*parsed(R"({"a": 2.5})").root.find("a") == value{2.5});
}

TEST_CASE("Document file that cannot be read is an input-output error") {
  const scratch_folder folder;
  diagnostics problems;
  CHECK_THROWS_WITH(load(folder.path() / "none.json", {}, problems),
                    Catch::Matchers::EndsWith("none.json: cannot be read"));
  CHECK_THROWS_WITH(load(folder.path(), {}, problems), Catch::Matchers::EndsWith(": is a directory"));
  CHECK_THROWS_AS(load(folder.path() / "none.json", {}, problems), io_error);
}

TEST_CASE("Document file over the limit is refused") {
  const scratch_folder folder;
  const auto path = folder.write("big.json", "{}");
  std::filesystem::resize_file(path, max_document_bytes + 1);
  diagnostics problems;
  load(path, {"file", "big.json"}, problems);
  CHECK(text_of(problems) == "big.json#: larger than 64 MiB\n");
}

TEST_CASE("Scalar from the command line is JSON, else a string") {
  CHECK(parse_scalar("4") == value{4});
  CHECK(parse_scalar("2.5") == value{2.5});
  CHECK(parse_scalar("true") == value{true});
  CHECK(parse_scalar("null") == value{});
  CHECK(parse_scalar("\"4\"") == value{"4"});
  CHECK(parse_scalar("900 GB/s") == value{"900 GB/s"});
  CHECK(parse_scalar("") == value{""});
  CHECK(parse_scalar("1e999") == value{"1e999"});
  CHECK(parse_scalar("[1, 2]") == value{value::array{value{1}, value{2}}});
  CHECK(parse_scalar("{\"a\": 1, \"a\": 2}") == value{"{\"a\": 1, \"a\": 2}"});
  CHECK(parse_scalar(nested(65)) == value{nested(65)});
}

TEST_CASE("Python's bare infinities and NaN are null where they are accepted, and nothing in strings") {
  const auto read = [](std::string_view text, literals accepted) {
    diagnostics problems;
    const document d = parse(text, {"file", "f.json"}, problems, root_type::any, accepted);
    return std::pair{d.root, text_of(problems)};
  };
  constexpr std::string_view text =
      R"({"a": [0.0, Infinity, -Infinity, NaN], "b": "NaN \" Infinity", "Infinity": 1})";
  const auto [root, problems] = read(text, literals::python);
  CHECK(problems.empty());
  CHECK(*root.find("a") == value{value::array{value{0.0}, value{}, value{}, value{}}});
  CHECK(*root.find("b") == value{"NaN \" Infinity"});
  CHECK(*root.find("Infinity") == value{1});
  CHECK_FALSE(read(text, literals::json).second.empty());
  // Other faults keep their place.
  CHECK(read("{\"a\": -Infinity, \"b\": tru}", literals::python).second ==
        read("{\"a\":      null, \"b\": tru}", literals::json).second);
  for (const char* broken : {"Infinit", "\"\\", "-NaN", "NaN1", "\"NaN"})
    CHECK_FALSE(read(broken, literals::python).second.empty());
}
