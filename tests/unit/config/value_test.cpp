#include "nvlsim/config/value.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

using namespace nvlsim;

namespace {

value sample() {
  value v;
  v.set("a", value{value::array{value{1}, value{value::object{{"b", value{"deep"}}}}}});
  v.set("x/y", value{2});
  v.set("~", value{3});
  v.set("", value{4});
  return v;
}

}  // namespace

TEST_CASE("Value knows its type") {
  CHECK(value{}.type_name() == "null");
  CHECK(value{nullptr}.is_null());
  CHECK(value{true}.type_name() == "boolean");
  CHECK(value{7}.type_name() == "integer");
  CHECK(value{7.0}.type_name() == "number");
  CHECK(value{"x"}.type_name() == "string");
  CHECK(value{value::array{}}.type_name() == "array");
  CHECK(value{value::object{}}.type_name() == "object");
  CHECK(*value{7}.integer() == 7);
  CHECK_FALSE(value{7}.number());
  CHECK_FALSE(value{"7"}.integer());
}

TEST_CASE("Value sets, replaces and finds members in order") {
  value v;
  v.set("b", value{1});
  v.set("a", value{2});
  v.set("b", value{3});
  REQUIRE(v.members()->size() == 2);
  CHECK(v.members()->front().first == "b");
  CHECK(*v.find("b") == value{3});
  CHECK(v.find("c") == nullptr);
  CHECK(value{1}.find("a") == nullptr);
  value number{1};
  CHECK_THROWS_AS(number.set("a", value{}), std::logic_error);
}

TEST_CASE("Value is reached by pointer") {
  const value v = sample();
  CHECK(v.at_pointer("") == &v);
  CHECK(*v.at_pointer("/a/0") == value{1});
  CHECK(*v.at_pointer("/a/1/b") == value{"deep"});
  CHECK(*v.at_pointer("/x~1y") == value{2});
  CHECK(*v.at_pointer("/~0") == value{3});
  CHECK(*v.at_pointer("/") == value{4});
  for (const char* nowhere :
       {"/b", "/a/2", "/a/-", "/a/-1", "/a/01", "/a/0/x", "/a/1x", "/a/", "/a/99999999999999999999"})
    CHECK(v.at_pointer(nowhere) == nullptr);
  CHECK_THROWS_AS(v.at_pointer("a"), std::invalid_argument);
}

TEST_CASE("Pointer tokens survive escaping") {
  CHECK(pointer_to("/a", "b/c~d") == "/a/b~1c~0d");
  CHECK(split_pointer("/a/b~1c~0d") == std::vector<std::string>{"a", "b/c~d"});
  CHECK(split_pointer("/~01") == std::vector<std::string>{"~1"});
  CHECK(split_pointer("").empty());
  CHECK(split_pointer("//") == std::vector<std::string>{"", ""});
}
