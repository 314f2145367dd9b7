#include "scenario/operation_profile.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "nvlsim/scenario/inputs.hpp"

namespace nvlsim {
namespace {

constexpr std::string_view profile_schema = "nvlsim.operation-profile/1";
constexpr std::array<std::string_view, 4> filled = {"racks_per_row", "failures", "checkpoint", "recovery"};

/// Sources in full: the scenario does not have the profile's table of them.
value with_sources(const value& v, const value* table) {
  if (v.items()) {
    value out{value::array{}};
    for (const value& x : *v.items()) out.items()->push_back(with_sources(x, table));
    return out;
  }
  if (!v.members()) return v;
  value out{value::object{}};
  for (const auto& [key, x] : *v.members()) {
    const value* full = key == "source" && table && x.string() ? table->find(*x.string()) : nullptr;
    out.set(key, full ? *full : with_sources(x, table));
  }
  return out;
}

/// Adds what `target`, at `pointer` of `doc`, lacks.
void fill(config::document& doc, value& target, const value& profile, const std::string& pointer,
          const config::origin& by) {
  for (const auto& [key, v] : *profile.members()) {
    const std::string here = pointer_to(pointer, key);
    value* own = target.find(key);
    if (!own) {
      target.set(key, v);
      doc.origins[here] = by;
    } else if (own->members() && !own->find("value") && v.members() && !v.find("value")) {
      fill(doc, *own, v, here, by);
    }
  }
}

config::document profile_document(const std::string& name, const data_folders& data, const problem& asked_by,
                                  diagnostics& problems) {
  const config::named_input input{"operation profile", name, asked_by};
  if (!is_path(name)) return config::load_named(data.platforms / "operations", input, problems);
  const std::filesystem::path path(name);
  return config::load_named(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."),
                            {input.what, path.stem().string(), asked_by}, problems,
                            {config::literals::json, data.platforms / "operations"});
}

}  // namespace

void fill_from_profile(config::document& scenario, const data_folders& data, diagnostics& problems) {
  value* workload = scenario.root.find("workload");
  if (!workload || !workload->members()) return;
  std::string name = usual_profile;
  constexpr const char* pointer = "/workload/profile";
  const config::origin asked = scenario.origin_of(pointer);
  if (const value* given = workload->find("profile"); given && given->string()) {
    name = *given->string();
    if (is_path(name) && !asked.overrides)
      name = (std::filesystem::path(scenario.self.where).parent_path() / name).string();
  }
  diagnostics own;
  config::document profile;
  try {
    profile = profile_document(name, data, {asked.where, pointer, {}, {}}, own);
  } catch (const io_error& e) {
    problems.add({asked.where, pointer, e.what(), {}, true});
    return;
  }
  const bool found = own.empty();
  for (problem& p : own.sorted()) problems.add(std::move(p));
  if (!found) return;
  const value* schema = profile.root.find("schema");
  if (!schema || !schema->string() || *schema->string() != profile_schema) {
    problems.add(profile.self.where, "/schema", "expected \"" + std::string(profile_schema) + "\"");
    return;
  }
  value members{value::object{}};
  for (const std::string_view key : filled)
    if (const value* v = profile.root.find(key)) members.set(key, with_sources(*v, profile.root.find("sources")));
  fill(scenario, *workload, members, "/workload", {"operation profile " + input_name(name), profile.self.where});
}

}  // namespace nvlsim
