// Typed values written as files would say them.
#include <catch2/catch.hpp>

#include <filesystem>
#include <set>
#include <string>

#include "nvlsim/config/document.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/platform/load.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/stack/compose.hpp"
#include "nvlsim/stack/load.hpp"
#include "nvlsim/units/units_text.hpp"
#include "scenario/source.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;

/// Every leaf of `v` written over a document, as `--set` would.
void write_all(config::document& doc, const value& v, const std::string& pointer, diagnostics& problems) {
  if (const auto* members = v.members()) {
    for (const auto& [name, child] : *members) write_all(doc, child, pointer_to(pointer, name), problems);
    return;
  }
  config::override_value(doc, pointer, v, {"test", "test", true}, problems);
}

template <class T, class Read, class Write>
void check_inverse(const std::filesystem::path& folder, const char* what, Read read, Write write) {
  for (const std::string& name : config::names_in(folder)) {
    INFO(what << " " << name);
    diagnostics problems;
    config::document doc = config::load_named(folder, {what, name, {}}, problems);
    const T before = read(doc, name, problems);
    problems.throw_if_any();
    const value written = write(before);
    std::set<std::string> missing;
    for (const config::provenance& p : doc.sources)
      if (!written.at_pointer(p.pointer)) missing.insert(p.pointer);
    for (const std::string& pointer : missing) UNSCOPED_INFO("not written: " << pointer);
    CHECK(missing.empty());
    config::document again = config::load_named(folder, {what, name, {}}, problems);
    write_all(again, written, "", problems);
    T after = read(again, name, problems);
    problems.throw_if_any();
    CHECK(write(after) == written);
    CHECK(after == before);
  }
}

TEST_CASE("A platform reads as it is written") {
  check_inverse<platform>(root / "platforms", "platform", read_platform, write_platform);
}

TEST_CASE("A quantity is written so that it reads as the same number") {
  for (const double x : {0.0, 1.0, 5e10, 1.5e-6, 0.1, 1.0 / 3, 288e9, 27.04 / 3600, 1e-12, 7.25e15})
    for (const dimension d :
         {bytes::dim_type::value, seconds::dim_type::value, bandwidth::dim_type::value, flop_rate::dim_type::value,
          watts::dim_type::value, dollar_rate::dim_type::value, energy_per_flop::dim_type::value}) {
      const std::string text = exact_quantity(x, d);
      INFO(text);
      const parsed_quantity back = parse_quantity(text, d);
      CHECK(back.ok());
      CHECK(back.base == x);
    }
  CHECK(exact_quantity(5e10, bandwidth::dim_type::value) == "50 GB/s");
  CHECK(exact_quantity(1e-6, seconds::dim_type::value) == "1 us");
}

TEST_CASE("A stack's constants are all written") {
  const data_folders data = folders_under(root);
  for (const std::string& name : stack_names(data.stacks)) {
    INFO(name);
    diagnostics problems;
    const loaded<stack> s = load_stack({name}, data, problems);
    problems.throw_if_any();
    const value written = write_stack(s.content);
    for (const config::provenance& p : s.source.sources) {
      const bool of_errors = p.pointer.starts_with("/collectives/spreads") ||
                             p.pointer.starts_with("/kernel_spreads") ||
                             p.pointer.starts_with("/training/residuals");
      if (!of_errors && !written.at_pointer(p.pointer)) FAIL_CHECK("not written: " << p.pointer);
    }
  }
}

bool has_parts(const scenario& s) {
  return std::holds_alternative<shared_workload>(s.workload) ||
         std::holds_alternative<operation_case>(s.workload) ||
         std::holds_alternative<post_training_case>(s.workload);
}

/// A scenario with every member of its workload written over it.
TEST_CASE("A workload reads as it is written") {
  const auto folders = folders_under(root);
  for (const auto& e : std::filesystem::recursive_directory_iterator(root / "scenarios")) {
    if (e.path().extension() != ".json" || e.path().parent_path().filename() == "models") continue;
    INFO(e.path());
    const scenario s = load_scenario(e.path(), {}, folders);
    if (has_parts(s)) continue;  // each has a workload of its own
    const value written = write_workload(s);
    const value* workload = written.find("workload");
    REQUIRE(workload);
    if (written.at_pointer("/workload/load/file")) continue;  // a path counts from where it is written
    std::vector<override_option> sets;
    for (const char* section : {"workload", "simulation"}) {
      const value* v = written.find(section);
      REQUIRE(v);
      sets.push_back({std::string("/") + section, to_json(*v, 0)});
    }
    const scenario again = load_scenario(e.path(), sets, folders);
    INFO(to_json(written));
    INFO(to_json(write_workload(again)));
    CHECK(to_json(write_workload(again)) == to_json(written));  // texts have 12 digits
  }
}

}  // namespace
}  // namespace nvlsim
