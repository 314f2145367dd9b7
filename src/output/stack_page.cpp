#include "nvlsim/output/input_pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/scenario/stack_values.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

using page_rows = std::vector<std::vector<std::string>>;

/// A member in force.
struct shown_member {
  std::string pointer;
  const value* content;
  const config::provenance* number;  ///< null of what is no number
  std::string from;                  ///< "vllm.json, release 0.12"
};

bool about_numbers(std::string_view key) {
  return key == "kind" || key == "source" || key == "sources" || key == "schema" || key == "description" ||
         key == "like";
}

/// Tables whose entries are named after hardware or kernels.
constexpr std::array<std::string_view, 9> long_tables = {"/kernels",
                                                         "/collectives/measured_on",
                                                         "/collectives/tuning",
                                                         "/collectives/domain",
                                                         "/collectives/fabric",
                                                         "/collectives/all_to_all",
                                                         "/collectives/custom",
                                                         "/collectives/expert_exchange",
                                                         "/inference/gpus"};

void keep_entries(value& table, const std::vector<std::string>& names) {
  std::erase_if(*table.members(), [&](const value::member& m) {
    return m.second.members() && std::find(names.begin(), names.end(), m.first) == names.end();
  });
}

/// Takes from `under` what `over` has.
void hide(value& under, const value& over) {
  if (!under.members() || under.find("value") || !over.members()) return;
  std::erase_if(*under.members(), [&](value::member& m) {
    const value* v = over.find(m.first);
    if (!v || about_numbers(m.first)) return false;
    if (!m.second.members() || m.second.find("value")) return true;
    hide(m.second, *v);
    return false;
  });
}

void keep_kernels(value& kernels, const gpu_spec& gpu) {
  const std::vector<std::string> names = kernel_entries(kernels, gpu);
  keep_entries(kernels, names);
  for (std::size_t i = 1; i < names.size(); ++i) {
    value& under = *kernels.find(names[i]);
    std::erase_if(*under.members(), [](const value::member& m) { return m.first == "measured_on"; });
    for (std::size_t over = 0; over < i; ++over) hide(under, *kernels.find(names[over]));
  }
}

/// Only what applies to the machine.
void keep_machine(value& root, const platform& p) {
  if (value* kernels = root.find("kernels")) keep_kernels(*kernels, p.gpu);
  const std::string domain = link_kind(p.gpu);
  std::vector<std::string> names = {p.gpu.name, p.gpu.architecture, p.fabric.name, domain};
  if (const value* like = root.at_pointer("/collectives/measured_on/" + domain + "/like"))
    if (like->string()) names.push_back(*like->string());
  names.push_back("default");
  value* collectives = root.find("collectives");
  for (const char* t : {"tuning", "domain", "fabric", "all_to_all", "custom"}) {
    value* table = collectives ? collectives->find(t) : nullptr;
    if (!table) continue;
    const auto first =
        std::find_if(names.begin(), names.end(), [&](const std::string& n) { return table->find(n); });
    keep_entries(*table, first == names.end() ? std::vector<std::string>{} : std::vector{*first});
  }
  if (value* measured = collectives ? collectives->find("measured_on") : nullptr) keep_entries(*measured, names);
  value* inference = root.find("inference");
  if (value* gpus = inference ? inference->find("gpus") : nullptr) {
    const std::string entry = gpus->find(p.gpu.name) ? p.gpu.name : p.gpu.architecture;
    keep_entries(*gpus, {entry});
    if (const value* own = gpus->find(entry)) hide(*inference, value{*own});
  }
}

/// Names of the entries of a table.
std::vector<std::string> entries_of(const value& table) {
  std::vector<std::string> out;
  for (const auto& [name, v] : *table.members())
    if (v.members()) out.push_back(name);
  return out;
}

std::string file_of(const config::document& doc, const std::string& pointer) {
  if (std::any_of(doc.defaults.begin(), doc.defaults.end(), [&](const auto& d) { return d.first == pointer; }))
    return "default";
  const std::string& label = doc.origin_of(pointer).label;
  if (!label.starts_with("stack ")) return label;
  const std::size_t name = std::min(label.find(", release "), label.size());
  return label.substr(6, name - 6) + ".json" + label.substr(name);
}

void list_members(const value& v, const std::string& pointer, const config::document& doc,
                  const std::map<std::string, const config::provenance*>& numbers,
                  std::vector<shown_member>& out) {
  const auto number = numbers.find(pointer);
  if (v.members() && !v.find("value")) {
    for (const auto& [key, inner] : *v.members())
      if (!about_numbers(key)) list_members(inner, pointer_to(pointer, key), doc, numbers, out);
  } else if (!v.is_null()) {
    out.push_back({pointer, &v, number == numbers.end() ? nullptr : number->second, file_of(doc, pointer)});
  }
}

std::vector<shown_member> members_of(const value& root, const config::document& doc) {
  std::map<std::string, const config::provenance*> numbers;
  for (const config::provenance& s : doc.sources) numbers.emplace(s.pointer, &s);
  std::vector<shown_member> out;
  list_members(root, "", doc, numbers, out);
  return out;
}

/// "24.23 ms" however the file writes it.
std::string readable(const std::string& text) {
  for (const dimension d : {seconds::dim_type::value, bandwidth::dim_type::value, bytes::dim_type::value,
                            flop_rate::dim_type::value, watts::dim_type::value})
    if (const parsed_quantity q = parse_quantity(text, d); q.ok() && text.find("OPS") == std::string::npos)
      return format_quantity(q.base, d);
    else if (q.ok()) {
      const std::string rate = format_quantity(q.base, d);
      return text.find("FLOPS") == std::string::npos ? rate.substr(0, rate.size() - 5) + "OPS" : rate;
    }
  return text;
}

std::string text_of(const value& content) {
  const value* inner = content.find("value");
  const value& v = inner ? *inner : content;
  if (const std::string* s = v.string()) return readable(*s);
  if (const auto* a = v.items()) {
    std::vector<std::string> parts;
    for (const value& e : *a)
      if (e.members()) return fmt::format("{} entries", a->size());
      else parts.push_back(text_of(e));
    return fmt::format("{}", fmt::join(parts, ", "));
  }
  return output::scaled("", v);
}

/// The last name of each pointer, with the one before it where two have the same.
std::vector<std::string> short_names(const std::vector<std::string>& pointers) {
  const auto last = [](const std::string& p) { return p.substr(p.rfind('/') + 1); };
  std::vector<std::string> out;
  for (const std::string& p : pointers) {
    const bool alone = std::count_if(pointers.begin(), pointers.end(),
                                     [&](const std::string& q) { return last(q) == last(p); }) == 1;
    out.push_back(alone ? last(p) : p.substr(p.find('/', 1) + 1));
  }
  return out;
}

/// The table of releases turned round: a column for each, so that they stand side by side.
std::string release_grid(const value& table) {
  std::vector<std::string> pointers;
  for (const value& c : *table.find("columns")->items()) pointers.push_back(*c.string());
  const std::vector<std::string> names = short_names(pointers);
  page_rows out(1, {"release"});
  for (std::size_t i = 0; i < names.size(); ++i)
    if (pointers[i] != "/description") out.push_back({names[i]});
  for (const auto& [name, row] : *table.find("rows")->members()) {
    out[0].push_back(name);
    std::size_t line = 1;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (pointers[i] != "/description") out[line++].push_back(text_of((*row.items())[i]));
  }
  return output::grid(out, 2);
}

std::string file_index(std::vector<std::string>& files, const std::string& from) {
  auto it = std::find(files.begin(), files.end(), from);
  if (it == files.end()) it = files.insert(files.end(), from);
  return fmt::format("[{}]", it - files.begin() + 1);
}

/// Takes the long tables out, and names their entries.
std::string name_tables(value& root) {
  std::string out;
  for (const std::string_view t : long_tables) {
    const std::string pointer(t), parent = pointer.substr(0, pointer.rfind('/')),
                                  key = pointer.substr(pointer.rfind('/') + 1);
    value* around = parent.empty() ? &root : root.find(parent.substr(1));
    const value* table = around ? around->find(key) : nullptr;
    if (!table || !table->members()) continue;
    std::string label = fmt::format("  {:<29}", pointer.substr(1));
    for (const std::string& line : output::wrapped(fmt::format("{}", fmt::join(entries_of(*table), ", ")),
                                                   output::table_columns - label.size())) {
      out += label + line + "\n";
      label.assign(label.size(), ' ');
    }
    std::erase_if(*around->members(), [&](const value::member& m) { return m.first == key; });
  }
  return out.empty() ? out
                     : "\nTables by hardware and kernel; --platform NAME prints what applies to a machine\n" + out;
}

/// Members by the object they are in, the sections of the framework first.
std::vector<std::pair<std::string, page_rows>> groups_of(const std::vector<shown_member>& members,
                                                         std::vector<std::string>& files) {
  std::vector<std::pair<std::string, page_rows>> out;
  for (const char* section : {"/training", "/inference", "/kernels", "/kernel_spreads", "/collectives"})
    for (const shown_member& m : members) {
      if (!m.pointer.starts_with(std::string(section) + "/")) continue;
      const std::size_t last = m.pointer.rfind('/');
      const std::string group = m.pointer.substr(1, last - 1);
      auto it = std::find_if(out.begin(), out.end(), [&](const auto& g) { return g.first == group; });
      if (it == out.end()) it = out.insert(out.end(), {group, {}});
      it->second.push_back({m.pointer.substr(last + 1), output::one_line(text_of(*m.content), 34),
                            m.number ? m.number->kind : "", file_index(files, m.from)});
    }
  return out;
}

}  // namespace

std::string stack_page(const stack& s, const config::document& doc, const platform* machine,
                       const value& releases) {
  value root = doc.resolved();
  std::string tables;
  if (machine) keep_machine(root, *machine);
  else tables = name_tables(root);
  std::vector<std::string> files;
  std::string body;
  for (const auto& [group, members] : groups_of(members_of(root, doc), files))
    body += fmt::format("\n{}\n", group) + output::grid(members, 2);
  std::string out;
  for (const std::string& line :
       output::wrapped(fmt::format("{}: {}", s.name, s.description), output::table_columns))
    out += line + "\n";
  if (releases.members()) out += "\nReleases\n" + release_grid(releases);
  out += "\nFiles\n";
  for (std::size_t i = 0; i < files.size(); ++i)
    out += fmt::format("  {:<5}{}\n", fmt::format("[{}]", i + 1), files[i]);
  return out + body + tables;
}

value stack_json(const stack& s, const config::document& doc, const platform* machine) {
  value root = doc.resolved();
  if (machine) keep_machine(root, *machine);
  value::array members;
  for (const shown_member& m : members_of(root, doc)) {
    const value* inner = m.content->find("value");
    members.push_back(value::object{{"pointer", m.pointer},
                                    {"value", inner ? *inner : *m.content},
                                    {"kind", m.number ? value{m.number->kind} : value{}},
                                    {"source", m.number ? value{m.number->source} : value{}},
                                    {"from", m.from}});
  }
  return value::object{{"schema", "nvlsim.stack_page/1"},
                       {"name", s.name},
                       {"description", s.description},
                       {"members", std::move(members)},
                       {"stack", doc.resolved()}};
}

}  // namespace nvlsim
