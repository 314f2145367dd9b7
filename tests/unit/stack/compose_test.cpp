// Stacks from their parts, and the tables of releases.
#include "nvlsim/stack/compose.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "nvlsim/stack/load.hpp"
#include "nvlsim/stack/releases.hpp"
#include "unit/config/texts.hpp"

using namespace nvlsim;
using nvlsim::config::test::parsed;
using nvlsim::config::test::scratch_folder;
using nvlsim::config::test::text_of;

namespace {

const std::filesystem::path shipped = NVLSIM_SOURCE_DIR "/platforms/stacks";

/// A folder with two libraries of kernels, one of each other part, and a framework with two releases.
struct small_catalogue : scratch_folder {
  small_catalogue() {
    for (const stack_part& p : stack_parts) std::filesystem::create_directory(path() / p.name);
    write("kernels/basic.json", R"({"description": "basic", "sources": {"s": "of basic"}, "collectives": "net",
      "kernels": {"h100": {"a": 1, "b": 1}}, "kernel_spreads": {"rows": 1}, "training": {"stray": 1}})");
    write("kernels/fused.json", R"({"base": "basic", "description": "fused", "kernels": {"h100": {"b": 2}}})");
    write("collectives/net.json",
          R"({"description": "net", "sources": {"n": "of net"}, "collectives": {"x": 1}})");
    write("collectives/next.json", R"({"description": "next", "collectives": {"x": 2}})");
    write("serving/pool.json", R"({"description": "pool", "inference": {"host": 1, "layer": 1, "gone": 1}})");
    write("engine.json", R"({"description": "engine", "kernels": "fused", "collectives": "net", "serving": "pool",
      "inference": {"layer": 2, "gone": null},
      "releases": {"kind": "derived", "source": "fit", "columns": ["/inference/factor", "/inference/front/delay", "/description"],
        "rows": {"1.0": [1.5, "2 ms", "engine 1.0"], "1.1": [2, null, "engine 1.1"],
                 "1.1-lab": [null, {"value": "3 ms", "kind": "measured", "source": "lab"}, null]},
        "details": {"1.1-lab": {"base": "1.1", "inference": {"layer": 9}}}}})");
  }
};

/// Problems with the folder's path taken out.
std::string problems_of(const scratch_folder& folder, std::string_view name,
                        const std::vector<part_swap>& swaps = {}) {
  diagnostics d;
  compose_stack(folder.path(), name, {"scenario.json", "/stack", {}, {}}, d, {{}, swaps});
  std::string out = text_of(d);
  const std::string prefix = folder.path().string() + "/";
  for (std::size_t at; (at = out.find(prefix)) != std::string::npos;) out.erase(at, prefix.size());
  return out;
}

config::document composed(const std::filesystem::path& folder, std::string_view name,
                          const std::vector<part_swap>& swaps = {}) {
  diagnostics d;
  config::document doc = compose_stack(folder, name, {}, d, {{}, swaps});
  CHECK(text_of(d) == "");
  return doc;
}

std::string number_at(const config::document& doc, std::string_view pointer) {
  const value* v = doc.root.at_pointer(pointer);
  if (!v) return "none";
  if (const value* inner = v->find("value")) v = inner;
  return v->integer() ? std::to_string(*v->integer()) : v->string() ? *v->string() : "other";
}

}  // namespace

TEST_CASE("Stack is its parts, its framework and its release, each over the one before") {
  const small_catalogue folder;
  const config::document doc = composed(folder.path(), "engine-1.1");
  CHECK(number_at(doc, "/kernels/h100/a") == "1");
  CHECK(number_at(doc, "/kernels/h100/b") == "2");  // a library over its base
  CHECK(doc.root.find("kernel_spreads"));
  CHECK(number_at(doc, "/collectives/x") == "1");
  CHECK(number_at(doc, "/inference/host") == "1");
  CHECK(number_at(doc, "/inference/layer") == "2");  // the framework over the library
  CHECK(number_at(doc, "/inference/gone") == "none");
  CHECK(number_at(doc, "/inference/factor") == "2");  // the release over both
  CHECK(number_at(doc, "/inference/front/delay") == "none");
  CHECK(*doc.root.find("description") == value{"engine 1.1"});
  CHECK(doc.root.at_pointer("/sources/s"));
  CHECK_FALSE(doc.root.find("training"));  // of a part, its own sections only
  for (const char* gone : {"base", "serving", "release", "releases"}) CHECK_FALSE(doc.root.find(gone));
}

TEST_CASE("Composed stack knows which file and release each number is from") {
  const small_catalogue folder;
  const config::document doc = composed(folder.path(), "engine-1.0");
  CHECK(doc.origin_of("/kernels/h100/a").label == "stack kernels/basic");
  CHECK(doc.origin_of("/kernels/h100/b").label == "stack kernels/fused");
  CHECK(doc.origin_of("/collectives/x").label == "stack collectives/net");
  CHECK(doc.origin_of("/inference/host").label == "stack serving/pool");
  CHECK(doc.origin_of("/inference/layer").label == "stack engine");
  CHECK(doc.origin_of("/inference/factor").label == "stack engine, release 1.0");
  CHECK(doc.origin_of("/inference/nothing").where == (folder.path() / "engine.json").string());
  problem p{(folder.path() / "engine.json").string(), "/inference/front/delay", "bad", {}};
  config::relocate(p, doc);
  CHECK(p.pointer == "/releases/rows/1.0/1");
  const config::document lab = composed(folder.path(), "engine-1.1-lab");
  p.pointer = "/inference/layer";
  config::relocate(p, lab);
  CHECK(p.pointer == "/releases/details/1.1-lab/inference/layer");
}

TEST_CASE("Cells take the source of the table, but for those with their own") {
  const small_catalogue folder;
  const config::document one = composed(folder.path(), "engine-1.0");
  CHECK(*one.root.at_pointer("/inference/factor") ==
        parsed(R"({"value": 1.5, "kind": "derived", "source": "fit"})").root);
  CHECK(*one.root.at_pointer("/inference/front/delay/source") == value{"fit"});
  const config::document lab = composed(folder.path(), "engine-1.1-lab");
  CHECK(*lab.root.at_pointer("/inference/front/delay/source") == value{"lab"});
}

TEST_CASE("Release builds on another of its table") {
  const small_catalogue folder;
  const config::document lab = composed(folder.path(), "engine-1.1-lab");
  CHECK(number_at(lab, "/inference/factor") == "2");
  CHECK(number_at(lab, "/inference/front/delay") == "3 ms");
  CHECK(number_at(lab, "/inference/layer") == "9");
  CHECK(*lab.root.find("description") == value{"engine 1.1"});
}

TEST_CASE("Release may name libraries of its own") {
  const small_catalogue folder;
  folder.write(
      "lab.json",
      R"({"base": "engine-1.0", "releases": {"kind": "derived", "source": "s", "columns": ["/collectives", "/description"],
    "rows": {"1": [null, "2025 build"], "2": ["next", null], "3": ["nxt", null]}, "details": {"1": {"kernels": "basic"}, "3": {"kernels": "basc"}}}})");
  CHECK(number_at(composed(folder.path(), "lab-1"), "/collectives/x") == "1");
  CHECK(number_at(composed(folder.path(), "lab-1"), "/kernels/h100/b") == "1");
  CHECK(*composed(folder.path(), "lab-1").root.find("description") == value{"2025 build"});
  CHECK(number_at(composed(folder.path(), "lab-2"), "/collectives/x") == "2");
  CHECK(problems_of(folder, "lab-3") ==
        "lab.json#/releases/rows/3/0: unknown collectives library \"nxt\"; did you mean \"next\"?\n");
}

TEST_CASE("Name of a framework is what its releases have in common, or the release that it names") {
  const small_catalogue folder;
  CHECK(number_at(composed(folder.path(), "engine"), "/inference/factor") == "none");
  folder.write(
      "other.json",
      R"({"description": "o", "release": "2", "releases": {"columns": ["/inference/x"], "rows": {"1": [1], "2": [2]}}})");
  CHECK(number_at(composed(folder.path(), "other"), "/inference/x") == "2");
  CHECK(number_at(composed(folder.path(), "other-1"), "/inference/x") == "1");
  CHECK(stack_names(folder.path()) == std::vector<std::string>{"basic", "engine", "engine-1.0", "engine-1.1",
                                                               "engine-1.1-lab", "fused", "net", "next", "other",
                                                               "other-1", "other-2", "pool"});
}

TEST_CASE("Library is a stack with the parts it names") {
  const small_catalogue folder;
  const config::document doc = composed(folder.path(), "fused");
  CHECK(number_at(doc, "/kernels/h100/b") == "2");
  CHECK(number_at(doc, "/collectives/x") == "1");
}

TEST_CASE("File of one's own is merged over a stack and may name other parts") {
  const small_catalogue folder;
  folder.write(
      "mine.json",
      R"({"base": "engine-1.0", "collectives": "next", "kernels": {"h100": {"a": 7}}, "inference": {"factor": 3}})");
  const config::document doc = composed(folder.path(), "mine");
  CHECK(number_at(doc, "/collectives/x") == "2");
  CHECK(number_at(doc, "/kernels/h100/a") == "7");
  CHECK(number_at(doc, "/kernels/h100/b") == "2");
  CHECK(number_at(doc, "/inference/factor") == "3");
  CHECK(number_at(doc, "/inference/front/delay") == "2 ms");
  folder.write("without.json", R"({"base": "engine-1.0", "collectives": null})");
  CHECK_FALSE(composed(folder.path(), "without").root.find("collectives"));
  folder.write("alone.json", R"({"base": "engine-1.0", "serving": null})");
  CHECK(number_at(composed(folder.path(), "alone"), "/inference/host") == "none");
  CHECK(number_at(composed(folder.path(), "alone"), "/inference/layer") == "2");
}

TEST_CASE("Part is swapped under the same framework and release") {
  const small_catalogue folder;
  const config::origin set{"--set", "--set", true};
  const config::document doc =
      composed(folder.path(), "engine-1.0", {{"collectives", "next", set, "/stack/collectives"}});
  CHECK(number_at(doc, "/collectives/x") == "2");
  CHECK(doc.origin_of("/collectives/x").label == "stack collectives/next");
  CHECK(doc.origins.at("/collectives").overrides);
  folder.write("pools.json", R"({"inference": {"host": 5, "factor": 5}})");
  const std::string path = (folder.path() / "pools.json").string();
  const config::document pools = composed(folder.path(), "engine-1.1", {{"serving", path, set, "/stack/serving"}});
  CHECK(number_at(pools, "/inference/host") == "5");
  CHECK(number_at(pools, "/inference/factor") == "2");  // the release's own stays
}

TEST_CASE("Parts that are not there are explained where they are named") {
  const small_catalogue folder;
  folder.write("a.json", R"({"kernels": "fusd"})");
  folder.write("b.json", R"({"base": "engine-1.2"})");
  folder.write("c.json", R"({"serving": {"host": 1}})");
  folder.write("d.json", R"({"kernels": "./none.json"})");
  folder.write("e.json", R"({"release": "2", "releases": {"columns": [], "rows": {"1": []}}})");
  folder.write("serving/empty.json", R"({"description": "nothing"})");
  folder.write("f.json", R"({"serving": "empty"})");
  folder.write("g.json", R"({"base": ""})");
  folder.write("h.json", R"({"base": "engine", "serving": null, "collectives": null, "release": 1})");
  CHECK(problems_of(folder, "a") ==
        "a.json#/kernels: unknown kernels library \"fusd\"; did you mean \"fused\"?\n");
  CHECK(problems_of(folder, "b") == "b.json#/base: unknown stack \"engine-1.2\"; did you mean \"engine-1.1\"?\n");
  CHECK(problems_of(folder, "c") == "c.json#/serving: expected the name of a library, found object\n");
  CHECK(problems_of(folder, "d") == "d.json#/kernels: ./none.json: no such file\n");
  CHECK(problems_of(folder, "e") == "e.json#/release: unknown release \"2\"; known: 1\n");
  CHECK(problems_of(folder, "f") == "f.json#/serving: \"empty\" has no \"inference\"\n");
  CHECK(problems_of(folder, "g").starts_with("g.json#/base: unknown stack \"\""));
  CHECK(problems_of(folder, "h") == "h.json#/release: expected a string, found integer\n");
  CHECK(problems_of(folder, "engine-1.0", {{"kernels", "net", {"--set", "--set", true}, "/stack/kernels"}})
            .starts_with("--set#/stack/kernels: unknown kernels library \"net\"; "));
}

TEST_CASE("Circles of bases, parts and releases are problems") {
  const small_catalogue folder;
  folder.write("one.json", R"({"base": "two"})");
  folder.write("two.json", R"({"base": "one"})");
  folder.write("kernels/round.json", R"({"base": "user"})");
  folder.write("user.json", R"({"kernels": "round"})");
  folder.write(
      "loop.json",
      R"({"releases": {"columns": [], "rows": {"1": [], "2": []}, "details": {"1": {"base": "2"}, "2": {"base": "1"}}}})");
  CHECK(problems_of(folder, "one") == "two.json#/base: \"one\" is its own base\n");
  CHECK(problems_of(folder, "user") == "user.json#/kernels: \"round\" is part of itself\n");
  CHECK(problems_of(folder, "loop-1") == "loop.json#/releases/details/1/base: \"1\" is its own base\n");
}

TEST_CASE("Tables of releases in a wrong form are explained") {
  const small_catalogue folder;
  folder.write(
      "t.json",
      R"({"releases": {"columns": ["/inference/a", "b", "/inference/a"], "rows": {"1": [1], "2": {}}, "row": 1,
    "details": {"11": {}, "1": {"base": "3"}}}})");
  CHECK(problems_of(folder, "t") ==
        "t.json#/releases/columns/1: a column is the JSON pointer of a member, such as "
        "\"/inference/release_factor\"\n"
        "t.json#/releases/columns/2: column \"/inference/a\" is there twice\n"
        "t.json#/releases/details/1/base: expected the name of a release of this table\n"
        "t.json#/releases/details/11: no row has this name; did you mean \"1\"?\n"
        "t.json#/releases/row: unknown member; did you mean \"rows\"?\n"
        "t.json#/releases/rows/1: has 1 cells for 3 columns; null stands for what all releases have in common\n"
        "t.json#/releases/rows/2: expected an array of cells, found object\n");
}

TEST_CASE("Every shipped stack can be read, and says what its table says") {
  std::set<std::string> seen;
  for (const std::string& name : stack_names(shipped)) {
    INFO(name);
    diagnostics problems;
    config::document doc = compose_stack(shipped, name, {}, problems);
    const stack s = read_stack(doc, name, problems);
    CHECK(text_of(problems) == "");
    CHECK_FALSE(s.description.empty());
    seen.insert(name);
  }
  for (const char* old : {"vllm-0.12", "vllm-2023", "vllm", "serving", "sglang-dynamo", "tensorrt-llm-1.1-dense",
                          "nccl-2.29", "vidur-kernels", "tensorrt-llm-1.3-kernels", "tensorrt-llm-1.3rc17-kernels",
                          "megatron-bridge-26.06", "megatron-lm-papers", "mlperf-training-v6.0", "nemo-25.04"})
    CHECK(seen.contains(old));
}

TEST_CASE(
    "Columns of shipped tables are members that the framework or its library has, or that a release alone may "
    "have") {
  const std::set<std::string> of_releases = {"/inference/release_factor", "/inference/expert_release_factor"};
  for (const std::filesystem::path& file : stack_files_in(shipped)) {
    const value table = releases_of(shipped, file.stem().string());
    if (!table.members()) continue;
    INFO(file.stem().string());
    const config::document common = composed(shipped, file.stem().string());
    for (const value& column : *table.find("columns")->items()) {
      INFO(*column.string());
      CHECK((of_releases.contains(*column.string()) || common.root.at_pointer(*column.string())));
    }
  }
}
