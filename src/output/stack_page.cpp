#include "nvlsim/output/input_pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/rows.hpp"
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

/// What the bare numbers of a member count, where its name does not say it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> counted_members = {
    {{"scan_words_per_sm", "words/s"}}};

std::string text_of(const value& content, std::string_view key = {}) {
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
  double number = 0;
  if (!output::as_double(v, number)) return output::scaled("", v);
  for (const auto& [name, unit] : counted_members)
    if (name == key) return output::counted(number, unit);
  return std::abs(number) < 1e7 ? output::scaled("", v) : output::counted(number, "");
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
  return output::grid(out, 2, output::table_columns);
}

std::string file_index(std::vector<std::string>& files, const std::string& from) {
  auto it = std::find(files.begin(), files.end(), from);
  if (it == files.end()) it = files.insert(files.end(), from);
  return fmt::format("[{}]", it - files.begin() + 1);
}

void drop_tables(value& root) {
  for (const std::string_view t : long_tables) {
    const std::size_t last = t.rfind('/');
    value* around = last == 0 ? &root : root.find(t.substr(1, last - 1));
    if (around && around->members())
      std::erase_if(*around->members(),
                    [&](const value::member& m) { return m.first == t.substr(last + 1) && m.second.members(); });
  }
}

/// Names the entries and the files of the long tables.
std::string name_tables(const value& root, const config::document& doc, std::vector<std::string>& files) {
  std::string out;
  for (const std::string_view t : long_tables) {
    const std::string pointer(t);
    const value* table = root.at_pointer(pointer);
    if (!table || !table->members()) continue;
    std::vector<shown_member> inside;
    list_members(*table, pointer, doc, {}, inside);
    std::vector<std::string> marks;
    for (const shown_member& m : inside) output::merge_names(marks, file_index(files, m.from));
    std::string label = fmt::format("  {:<29}", pointer.substr(1));
    for (const std::string& line :
         output::wrapped(fmt::format("{}  {}", fmt::join(entries_of(*table), ", "), fmt::join(marks, " ")),
                         output::table_columns - label.size())) {
      out += label + line + "\n";
      label.assign(label.size(), ' ');
    }
  }
  return out.empty() ? out
                     : "\nTables by hardware and kernel; --platform NAME prints what applies to a machine\n" + out;
}

/// A pointer as people write it: "cells/b200/gpt-oss-120b" for "/cells/b200~1gpt-oss-120b".
std::string plain(std::string_view pointer) { return fmt::format("{}", fmt::join(split_pointer(pointer), "/")); }

/// Members by the object they are in, the sections of the framework first.
std::vector<std::pair<std::string, page_rows>> groups_of(const std::vector<shown_member>& members,
                                                         std::vector<std::string>& files) {
  std::vector<std::pair<std::string, page_rows>> out;
  for (const char* section : {"/training", "/inference", "/kernels", "/kernel_spreads", "/collectives"})
    for (const shown_member& m : members) {
      if (!m.pointer.starts_with(std::string(section) + "/")) continue;
      const std::size_t last = m.pointer.rfind('/');
      const std::string group = plain(m.pointer.substr(0, last)), key = plain(m.pointer.substr(last));
      auto it = std::find_if(out.begin(), out.end(), [&](const auto& g) { return g.first == group; });
      if (it == out.end()) it = out.insert(out.end(), {group, {}});
      it->second.push_back(
          {key, text_of(*m.content, key), m.number ? m.number->kind : "", file_index(files, m.from)});
    }
  return out;
}

/// The rows as a table that cuts nothing: texts that are too long continue on lines of their own.
std::string uncut(const page_rows& rows) {
  std::array<std::size_t, 4> widths = {};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], output::width(row[i]));
  const std::size_t around = 2 + widths[0] + 2 + 2 + widths[2] + 2 + widths[3];
  const std::size_t room =
      std::max<std::size_t>(output::table_columns - std::min(output::table_columns, around), 20);
  page_rows out;
  for (const auto& row : rows) {
    const std::vector<std::string> lines = output::wrapped(row[1], room);
    out.push_back({row[0], lines.empty() ? "" : lines.front(), row[2], row[3]});
    for (std::size_t i = 1; i < lines.size(); ++i) out.push_back({"", lines[i], "", ""});
  }
  return output::grid(out, 2, output::table_columns);
}

}  // namespace

std::string stack_page(const stack& s, const config::document& doc, const platform* machine,
                       const value& releases) {
  const value root = doc.resolved();
  value listed = root;
  if (machine) keep_machine(listed, *machine);
  else drop_tables(listed);
  std::vector<std::string> files;
  std::string body;
  for (const auto& [group, members] : groups_of(members_of(listed, doc), files))
    body += fmt::format("\n{}\n", group) + uncut(members);
  if (!machine) body += name_tables(root, doc, files);
  std::string out;
  for (const std::string& line :
       output::wrapped(fmt::format("{}: {}", s.name, s.description), output::table_columns))
    out += line + "\n";
  out += "\nFiles\n";
  for (std::size_t i = 0; i < files.size(); ++i)
    out += fmt::format("  {:<5}{}\n", fmt::format("[{}]", i + 1), files[i]);
  if (releases.members()) out += "\nReleases\n" + release_grid(releases);
  return out + body;
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
