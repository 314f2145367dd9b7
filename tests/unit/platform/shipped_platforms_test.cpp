#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "support/platforms.hpp"

using namespace nvlsim;
using nvlsim::test::read_shipped;

namespace {

/// Pointers of all numbers and of all texts that parse as one, outside "sources", names and notes.
void collect_numbers(const value& v, const std::string& pointer, std::set<std::string>& out) {
  if (v.number() || v.integer() ||
      (v.string() && !v.string()->empty() && (*v.string())[0] <= '9' && (*v.string())[0] >= '0'))
    out.insert(pointer);
  if (!v.members()) return;
  if (const value* inner = v.find("value")) return collect_numbers(*inner, pointer, out);
  for (const auto& [key, member] : *v.members())
    if (key != "sources" && key != "note" && key != "description" && key != "racks")
      collect_numbers(member, pointer_to(pointer, key), out);
}

}  // namespace

TEST_CASE("Shipped platforms load without problems and every number has a source") {
  for (const std::string& name : config::names_in(NVLSIM_SOURCE_DIR "/platforms")) {
    const auto r = read_shipped(name);
    CAPTURE(name);
    CHECK(r.problems == std::vector<std::string>{});
    CHECK(r.p.racks == 1);
    CHECK(r.p.name == name);
    CHECK(r.p.gpu.dense_peak(precision::fp32));
    std::set<std::string> numbers, sourced;
    collect_numbers(r.doc.root, "", numbers);
    for (const auto& s : r.doc.sources) {
      CHECK(s.source.size() > 10);  // in full, no key of the table
      sourced.insert(s.pointer);
    }
    CHECK(numbers == sourced);
    CHECK(numbers.size() > 40);
  }
}

TEST_CASE("Shipped platforms use all the sources they list") {
  for (const std::string& name : config::names_in(NVLSIM_SOURCE_DIR "/platforms")) {
    std::set<std::string> used;
    for (const auto& s : read_shipped(name).doc.sources) used.insert(s.source);
    diagnostics problems;
    const std::string file = NVLSIM_SOURCE_DIR "/platforms/" + name + ".json";
    const config::document own = config::load(file, {"platform", file}, problems);  // without its base
    const value* table = own.root.find("sources");
    if (!table) continue;
    for (const auto& [key, text] : *table->members()) {
      CAPTURE(name, key);
      CHECK(used.contains(*text.string()));
    }
  }
}

TEST_CASE("GB300 differs from GB200 where Blackwell Ultra does") {
  const gpu_spec ultra = read_shipped("gb300-nvl72").p.gpu, plain = read_shipped("gb200-nvl72").p.gpu;
  const auto ratio = [&](precision p) { return *ultra.dense_peak(p) / *plain.dense_peak(p); };
  CHECK(ratio(precision::nvfp4) == Approx(1.5));
  CHECK(ratio(precision::fp8) == 1.0);
  CHECK(ratio(precision::bf16) == 1.0);
  CHECK(ratio(precision::int8) == Approx(165.0 / 5000));
  CHECK(ultra.exponentials / plain.exponentials == Approx(2.14));
  CHECK(ultra.hbm_usable.base() == 298013687808.0);
  CHECK(plain.hbm_usable.base() == 198674743296.0);
  CHECK(ultra.tdp.base() == 1400);
  CHECK(plain.tdp.base() == 1200);
}

TEST_CASE("H100 has no FP4") {
  const gpu_spec gpu = read_shipped("nd-h100-v5").p.gpu;
  CHECK_FALSE(gpu.dense_peak(precision::nvfp4));
  CHECK_FALSE(gpu.dense_peak(precision::mxfp4));
  CHECK(gpu.dense_peak(precision::fp8)->base() == 1.979e15);
}

TEST_CASE("Platform prices are unknown where none is public") {
  CHECK_FALSE(read_shipped("gb300-nvl72").p.price.per_gpu);
  CHECK(read_shipped("gb200-nvl72").p.price.per_gpu->base() * 3600 == Approx(27.04));
  CHECK(read_shipped("nd-h100-v5").p.price.per_gpu->base() * 3600 == Approx(12.29));
}

TEST_CASE("Documented example of a derived platform loads over its base") {
  diagnostics problems;
  std::ifstream in(NVLSIM_SOURCE_DIR "/docs/platform-format.md", std::ios::binary);
  const std::string guide{std::istreambuf_iterator<char>(in), {}};
  const auto from = guide.find("{\n  \"schema\"");
  REQUIRE(from != std::string::npos);
  const std::string example = guide.substr(from, guide.find("\n```", from) - from);

  namespace fs = std::filesystem;
  const fs::path folder = fs::path(NVLSIM_BINARY_DIR) / "derived-platform-test";
  fs::create_directories(folder);
  fs::copy_file(NVLSIM_SOURCE_DIR "/platforms/gb300-nvl72.json", folder / "gb300-nvl72.json",
                fs::copy_options::overwrite_existing);
  std::ofstream(folder / "our-site.json") << example;
  config::document doc = config::load_named(folder, {"platform", "our-site", {}}, problems);
  const platform p = read_platform(doc, "our-site", problems);
  fs::remove_all(folder);
  CHECK(problems.sorted().empty());
  CHECK(p.fabric.nic_bandwidth.base() == 50e9);
  CHECK(p.fabric.leaf.ports == 64);
  CHECK(p.gpu.name == "gb300");
  CHECK(p.price.per_gpu->base() * 3600 == Approx(21));
}
