#include "nvlsim/config/document.hpp"

#include <catch2/catch.hpp>

#include <string>

#include "support/steps.hpp"
#include "unit/config/texts.hpp"

using namespace nvlsim;
using namespace nvlsim::config;
using nvlsim::config::test::parsed;
using nvlsim::config::test::scratch_folder;
using nvlsim::config::test::text_of;

namespace {

const problem asked{"scenario.json", "/platform", "", ""};

/// Loads `name` as a platform; problems with the folder's path taken out.
document named(const scratch_folder& folder, std::string_view name, std::string& problems) {
  diagnostics d;
  document doc = load_named(folder.path(), {"platform", name, asked}, d);
  problems = text_of(d);
  const std::string prefix = folder.path().string() + "/";
  for (std::size_t at; (at = problems.find(prefix)) != std::string::npos;) problems.erase(at, prefix.size());
  return doc;
}

std::string named_problems(const scratch_folder& folder, std::string_view name) {
  std::string problems;
  named(folder, name, problems);
  return problems;
}

std::string override_problems(document& doc, std::string_view pointer, std::string_view text) {
  diagnostics d;
  override_value(doc, pointer, text, {"--set", "--set"}, d);
  return text_of(d);
}

}  // namespace

TEST_CASE("Named document is the file of that name") {
  const scratch_folder folder;
  folder.write("gb200.json", R"({"gpus": 4})");
  std::string problems;
  const document doc = named(folder, "gb200", problems);
  CHECK(problems == "");
  CHECK(*doc.root.find("gpus") == value{4});
  CHECK(doc.self.label == "platform gb200");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"gb200"});
  CHECK(names_in(folder.path() / "none").empty());
}

TEST_CASE("Named document that does not exist is explained") {
  const scratch_folder folder;
  folder.write("gb200.json", "{}");
  folder.write("gb300.json", "{}");
  std::filesystem::create_directory(folder.path() / "folder.json");
  CHECK(named_problems(folder, "gb201") ==
        "scenario.json#/platform: unknown platform \"gb201\"; did you mean \"gb200\"?\n");
  const std::string known = "; known: folder, gb200, gb300\n";
  CHECK(named_problems(folder, "tpu") == "scenario.json#/platform: unknown platform \"tpu\"" + known);
  CHECK(named_problems(folder, "") == "scenario.json#/platform: unknown platform \"\"" + known);
  CHECK(named_problems(folder, "../x/y/z/and/so/on") ==
        "scenario.json#/platform: unknown platform \"../x/y/z/and/so/on\"" + known);
  CHECK(named_problems(folder, std::string("gb200.json\0", 11))
            .starts_with("scenario.json#/platform: unknown platform"));
  CHECK(named_problems(folder, std::string(5000, 'x'))
            .starts_with("scenario.json#/platform: unknown platform \"xxx"));
  CHECK(named_problems(folder, "folder").starts_with("scenario.json#/platform: unknown platform \"folder\""));
}

TEST_CASE("A name that others hold as a word stands for them, not for one that is spelt alike") {
  const scratch_folder folder;
  for (const char* name : {"h800.json", "nd-h100-v5.json", "h100-roce.json"}) folder.write(name, "{}");
  CHECK(named_problems(folder, "h100") ==
        "scenario.json#/platform: unknown platform \"h100\"; did you mean one of h100-roce, nd-h100-v5?\n");
  CHECK(named_problems(folder, "h80") ==
        "scenario.json#/platform: unknown platform \"h80\"; did you mean \"h800\"?\n");
}

TEST_CASE("Named document is merged over its bases") {
  const scratch_folder folder;
  folder.write("a.json",
               R"({"name": "a", "gpu": {"x": 1, "y": {"value": 1, "source": "s", "kind": "vendor"}, "z": 3},
                            "list": [1, 2], "gone": {"deep": 1}, "scalar": 1})");
  folder.write("b.json", R"({"base": "a", "gpu": {"x": 2, "z": null}, "list": [3], "gone": null})");
  folder.write("c.json",
               R"({"base": "b", "gpu": {"y": {"value": 9, "source": "t", "kind": "vendor"}, "new": {"q": null}},
                            "scalar": {"now": {"an": "object"}}})");
  std::string problems;
  const document doc = named(folder, "c", problems);
  CHECK(problems == "");
  CHECK(doc.root == parsed(R"({"name": "a",
    "gpu": {"x": 2, "y": {"value": 9, "source": "t", "kind": "vendor"}, "new": {}},
    "list": [3], "scalar": {"now": {"an": "object"}}, "base": "b"})")
                        .root);
  CHECK(doc.origin_of("/name").label == "platform a");
  CHECK(doc.origin_of("/gpu/x").label == "platform b");
  CHECK(doc.origin_of("/gpu/y/source").label == "platform c");
  CHECK(doc.origin_of("/list/0").label == "platform b");
  CHECK(doc.origin_of("/scalar/now/an").label == "platform c");
  CHECK(doc.origin_of("/gpu/missing").label == "platform c");  // to be repaired in the file that was asked for
  CHECK(doc.origin_of("").label == "platform c");
}

TEST_CASE("Named document with a bad base is explained where the base is named") {
  const scratch_folder folder;
  folder.write("self.json", R"({"base": "self"})");
  folder.write("one.json", R"({"base": "two"})");
  folder.write("two.json", R"({"base": "one"})");
  folder.write("lost.json", R"({"base": "self2"})");
  folder.write("number.json", R"({"base": 3})");
  folder.write("empty.json", R"({"base": ""})");
  folder.write("broken.json", R"({"a": 1, "a": 2})");
  folder.write("on_broken.json", R"({"base": "broken"})");
  CHECK(named_problems(folder, "self") == "self.json#/base: \"self\" is its own base\n");
  CHECK(named_problems(folder, "one") == "two.json#/base: \"one\" is its own base\n");
  CHECK(named_problems(folder, "lost") == "lost.json#/base: unknown platform \"self2\"; did you mean \"self\"?\n");
  CHECK(named_problems(folder, "number") == "number.json#/base: expected a string, found integer\n");
  CHECK(named_problems(folder, "empty").starts_with("empty.json#/base: unknown platform \"\""));
  CHECK(named_problems(folder, "on_broken") == "broken.json#/a: duplicate key\n");
}

TEST_CASE("Merging a named document takes time in proportion to its members") {
  const scratch_folder folder;
  CHECK(nvlsim::test::grows_in_proportion(10'000, [&](std::size_t n) {
    std::string base = "{", derived = "{\"base\": \"a\"";
    for (std::size_t i = 0; i < n; ++i) {
      const std::string name = "\"a_rather_long_member_name_" + std::to_string(i) + "\": ";
      base += name + "1,";
      derived += "," + name + (i % 2 ? "2" : "null");
    }
    base.back() = '}';
    folder.write("a.json", base);
    folder.write("b.json", derived + "}");
    return [&folder, n] {
      std::string problems;
      CHECK(named(folder, "b", problems).root.members()->size() == n / 2 + 1);
    };
  }));
}

TEST_CASE("Override writes a value and its origin") {
  document doc = parsed(R"({"workload": {"tp": 2, "list": [1, {"x": 1}]}, "name": "n"})");
  CHECK(override_problems(doc, "/workload/tp", "4") == "");
  CHECK(override_problems(doc, "/workload/list/1/x", "900 GB/s") == "");
  CHECK(override_problems(doc, "/new/a~1b/deep", "true") == "");
  CHECK(doc.root == parsed(R"({"workload": {"tp": 4, "list": [1, {"x": "900 GB/s"}]}, "name": "n",
                              "new": {"a/b": {"deep": true}}})")
                        .root);
  CHECK(doc.origin_of("/workload/tp").label == "--set");
  CHECK(doc.origin_of("/workload/tp").overrides);
  CHECK(doc.origin_of("/workload/list/1/x").label == "--set");
  CHECK(doc.origin_of("/new/a~1b/deep").label == "--set");
  CHECK(doc.origin_of("/workload").label == "file");
  CHECK_FALSE(doc.origin_of("/name").overrides);
}

TEST_CASE("Override of a whole object forgets what was said about its inside") {
  document doc = parsed(R"({"a": {"x": 1}, "ab": 1})");
  diagnostics none;
  override_value(doc, "/a/x", value{2}, {"first", "first"}, none);
  override_value(doc, "/ab", value{2}, {"first", "first"}, none);
  override_value(doc, "/a", value{value::object{{"x", value{3}}}}, {"second", "second"}, none);
  CHECK(doc.origin_of("/a/x").label == "second");
  CHECK(doc.origin_of("/ab").label == "first");
}

TEST_CASE("Override of a sourced number replaces the number and its source") {
  document doc = parsed(R"({"x": {"value": "1 GB", "source": "paper", "kind": "measured", "note": "n"}})");
  CHECK(override_problems(doc, "/x", "2 GB") == "");
  CHECK(doc.root ==
        parsed(R"({"x": {"value": "2 GB", "source": "set by the user", "kind": "assumed", "note": "n"}})").root);
  CHECK(override_problems(doc, "/x", "null") == "");
  CHECK(doc.root.find("x")->is_null());
}

TEST_CASE("Override that leads nowhere is explained and changes nothing") {
  document doc = parsed(R"({"list": [1, 2], "n": 1})");
  const value before = doc.root;
  const std::string begins = "a JSON pointer begins with \"/\", such as \"/workload/tp\"\n";
  CHECK(override_problems(doc, "n", "1") == "--set#n: " + begins);
  CHECK(override_problems(doc, "", "1") == "--set#: " + begins);
  CHECK(override_problems(doc, "/list/2", "1") == "--set#/list/2: no element \"2\" in an array of 2\n");
  CHECK(override_problems(doc, "/list/-", "1") == "--set#/list/-: no element \"-\" in an array of 2\n");
  CHECK(override_problems(doc, "/list/01", "1") == "--set#/list/01: no element \"01\" in an array of 2\n");
  CHECK(override_problems(doc, "/n/deep", "1") == "--set#/n/deep: a value of type integer has no members\n");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "/a";
  CHECK(override_problems(doc, deep, "1").ends_with(": nested deeper than 64 levels\n"));
  CHECK(doc.root == before);
  CHECK(doc.origins.empty());
}

TEST_CASE("Resolved document shows the defaults where the file is silent") {
  document doc = parsed(R"({"given": 1, "null": null, "child": {}})");
  doc.defaults = {{"/given", value{2}}, {"/null", value{3}}, {"/child/x", value{4}}, {"/new/y", value{5}}};
  CHECK(doc.resolved() == parsed(R"({"given": 1, "null": 3, "child": {"x": 4}, "new": {"y": 5}})").root);
  CHECK(*doc.root.find("given") == value{1});
  CHECK(doc.root.find("new") == nullptr);
}
