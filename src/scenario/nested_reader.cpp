#include "scenario/nested_reader.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

namespace nvlsim {
namespace {

/// Members of a nested scenario that are those of a scenario.
constexpr std::array<std::string_view, 5> scenario_members = {"stack", "model", "workload", "placement",
                                                              "degraded"};
/// Members of the whole scenario that say what it consists of.
constexpr std::array<std::string_view, 4> whole_members = {"jobs", "background", "description", "workload"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The part as a document of its own: what the scenario says of all parts, and the members of this one.
config::document document_of(const config::document& doc, const value& part, const std::string& pointer,
                             const nested_options& options) {
  config::document out = doc;
  value root{value::object{}};
  for (const auto& [key, v] : *doc.root.members())
    if (!is_one_of(key, whole_members)) root.set(key, v);
  root.set("name", options.name);
  if (options.network) {
    if (!root.find("simulation") || !root.find("simulation")->members())
      root.set("simulation", value{value::object{}});
    root.find("simulation")->set("fidelity", fidelity_names[static_cast<std::size_t>(*options.network)]);
  }
  for (const auto& [key, v] : *part.members()) {
    if (!is_one_of(key, scenario_members)) continue;
    if (key != "placement" || !v.members()) {
      root.set(key, v);
      continue;
    }
    value place{value::object{}};
    for (const auto& [member, x] : *v.members())
      if (!is_one_of(member, place_members)) place.set(member, x);
    if (!place.members()->empty()) root.set(key, std::move(place));
  }
  out.root = std::move(root);
  for (const auto& [at, origin] : doc.origins)
    if (at.starts_with(pointer + "/")) out.origins[at.substr(pointer.size())] = origin;
  return out;
}

/// Problems with the part's own members, where the scenario has them.
void report(const diagnostics& own, const value& part, const std::string& file, const std::string& pointer,
            diagnostics& problems) {
  for (problem& p : own.sorted()) {
    const std::string member = p.pointer.substr(0, p.pointer.find('/', 1));
    const bool of_part = !member.empty() && is_one_of(std::string_view(member).substr(1), scenario_members) &&
                         (part.find(std::string_view(member).substr(1)) || member == "/workload");
    if (p.file == file && of_part) p.pointer = pointer + p.pointer;
    problems.add(std::move(p));
  }
}

/// The name of a file that a part of a scenario gives; null if `part` is none or gives none.
const std::string* name_of(const value* part, std::string_view file) {
  const value* name = part && part->members() && part->find("workload") ? part->find(file) : nullptr;
  return name ? name->string() : nullptr;
}

void list_names(const value& v, const std::string& at, const std::string& file, std::vector<std::string>& out) {
  if (!at.empty() && name_of(&v, file)) out.push_back(pointer_to(at, file));
  if (const auto* members = v.members())
    for (const auto& [key, child] : *members) list_names(child, pointer_to(at, key), file, out);
  if (const auto* items = v.items())
    for (std::size_t i = 0; i < items->size(); ++i)
      list_names((*items)[i], pointer_to(at, std::to_string(i)), file, out);
}

}  // namespace

std::optional<std::string> place_inside(const value& root, std::string_view pointer, std::string_view file) {
  const std::string inside = std::string(file) + '/';
  if (pointer.starts_with(inside)) return "";
  for (std::size_t at = pointer.find(inside); at != std::string_view::npos; at = pointer.find(inside, at + 1)) {
    std::string place(pointer.substr(0, at));
    if (name_of(root.at_pointer(place), file.substr(1))) return place;
  }
  return std::nullopt;
}

std::vector<std::string> names_in_parts(const value& root, const std::string& file) {
  std::vector<std::string> out;
  list_names(root, "", file, out);
  return out;
}

std::shared_ptr<const scenario> read_nested(config::reader& r, const config::document& doc,
                                            const nested_options& options, const scenario_reader& read_alone,
                                            diagnostics& problems) {
  for (const std::string_view key : scenario_members) r.ignore(key);
  const value* text = doc.root.at_pointer(r.pointer());
  if (!text || !text->members() || !text->find("workload")) {
    r.fail("workload", "is missing");
    return nullptr;
  }
  diagnostics own;
  const nested_places places{text->find("stack") ? r.pointer() : "", text->find("model") ? r.pointer() : ""};
  auto alone = std::make_shared<scenario>(read_alone(document_of(doc, *text, r.pointer(), options), places, own));
  report(own, *text, doc.self.where, r.pointer(), problems);
  return own.empty() ? alone : nullptr;
}

}  // namespace nvlsim
