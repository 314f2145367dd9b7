#include "nvlsim/scenario/stack_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace nvlsim {
namespace {

bool is_provenance(std::string_view key) { return key == "kind" || key == "source" || key == "note"; }

/// Removes sources: `{"value": v, "source": ...}` becomes v.
value bare(const value& v) {
  const value::object* members = v.members();
  if (!members) return v;
  if (const value* inner = v.find("value")) return *inner;
  value out{value::object{}};
  for (const auto& [key, child] : *members)
    if (!is_provenance(key)) out.set(key, bare(child));
  return out;
}

/// Names of table entries that apply to `p`.
std::set<std::string> names_of(const platform& p, const value& stack) {
  const std::string domain = link_kind(p.gpu);
  std::set<std::string> out = {p.gpu.name, p.gpu.architecture, domain, p.fabric.name, "default"};
  if (const value* like = stack.at_pointer("/collectives/measured_on/" + domain + "/like"))
    if (like->string()) out.insert(*like->string());
  return out;
}

value only(const value& table, const std::set<std::string>& names) {
  value out{value::object{}};
  for (const auto& [key, child] : *table.members())
    if (names.contains(key)) out.set(key, child);
  return out;
}

}  // namespace

std::vector<std::string> kernel_entries(const value& kernels, const gpu_spec& gpu) {
  std::vector<std::string> out;
  const std::array<std::string, 3> wanted = {gpu.name, gpu.architecture, "default"};
  const auto first =
      std::find_if(wanted.begin(), wanted.end(), [&](const std::string& n) { return kernels.find(n); });
  const value* next = first == wanted.end() ? nullptr : kernels.find(*first);
  for (std::string name = next ? *first : ""; next && std::find(out.begin(), out.end(), name) == out.end();
       next = kernels.find(name)) {
    out.push_back(name);
    const value* like = next->find("like");
    if (!like || !like->string()) break;
    name = *like->string();
  }
  return out;
}

value stack_values(const value& resolved, const platform& p, std::string_view section) {
  value out{value::object{}};
  const value all = bare(resolved);
  const std::set<std::string> names = names_of(p, all);
  if (const value* kernels = all.find("kernels")) {
    const std::vector<std::string> entries = kernel_entries(*kernels, p.gpu);
    out.set("kernels", only(*kernels, {entries.begin(), entries.end()}));
  }
  if (const value* collectives = all.find("collectives")) {
    value kept{value::object{}};
    for (const auto& [table, v] : *collectives->members())
      if (table != "spreads") kept.set(table, v);  // used by bands only
    for (const char* table : {"tuning", "domain", "fabric", "all_to_all", "custom"})
      if (value* t = kept.find(table)) *t = only(*t, names);
    out.set("collectives", std::move(kept));
  }
  if (const value* used = all.find(section)) {
    value kept = *used;
    if (value* gpus = kept.find("gpus")) *gpus = only(*gpus, names);
    out.set(section, std::move(kept));
  }
  return out;
}

}  // namespace nvlsim
