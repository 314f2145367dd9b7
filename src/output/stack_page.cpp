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
#include "nvlsim/output/output.hpp"
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

/// The kind of a number's source; "what-if" of a value that the user set over the file.
std::string kind_of(const shown_member& m, const config::document& doc) {
  if (!m.number) return {};
  return doc.origin_of(m.pointer).overrides ? "what-if" : m.number->kind;
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

/// The same with lists of objects in full: "domain server, rows 40; domain server, rows 7".
std::string full_text_of(const value& content, std::string_view key) {
  const value* inner = content.find("value");
  const auto* list = (inner ? *inner : content).items();
  if (!list || std::none_of(list->begin(), list->end(), [](const value& e) { return e.members(); }))
    return text_of(content, key);
  std::vector<std::string> entries;
  for (const value& e : *list) {
    std::vector<std::string> parts;
    if (e.members())
      for (const auto& [name, v] : *e.members()) parts.push_back(name + " " + text_of(v, name));
    else parts.push_back(text_of(e));
    entries.push_back(fmt::format("{}", fmt::join(parts, ", ")));
  }
  return fmt::format("{}", fmt::join(entries, "; "));
}

/// A table of a name and texts, in which texts that are too long continue on lines of their own.
std::string wrapped_table(const page_rows& rows) {
  std::size_t names = 0, columns = 1;
  for (const auto& row : rows) {
    names = std::max(names, output::width(row[0]));
    columns = std::max(columns, row.size() - 1);
  }
  const std::size_t around = 2 + names + 2 * columns;
  const std::size_t room =
      std::max<std::size_t>((output::table_columns - std::min(output::table_columns, around)) / columns, 20);
  page_rows out;
  for (const auto& row : rows) {
    page_rows cells;
    std::size_t lines = 1;
    for (std::size_t i = 1; i < row.size(); ++i) {
      cells.push_back(output::wrapped(row[i], room));
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t line = 0; line < lines; ++line) {
      auto& added = out.emplace_back(1, line == 0 ? row[0] : "");
      for (const auto& cell : cells) added.push_back(line < cell.size() ? cell[line] : "");
    }
  }
  return output::grid(out, 2, output::table_columns);
}

/// A member that the details of some releases have.
struct release_detail {
  std::string name;                           ///< "calibration/release/tpot"
  std::map<std::string, std::string> values;  ///< by release
  bool long_text = false;                     ///< a list of objects
};

void list_details(const value& v, const std::string& pointer, const std::string& release,
                  std::vector<release_detail>& out) {
  if (v.members() && !v.find("value")) {
    for (const auto& [key, inner] : *v.members())
      if (!about_numbers(key)) list_details(inner, pointer_to(pointer, key), release, out);
    return;
  }
  const std::vector<std::string> path = split_pointer(pointer);
  const std::string name = fmt::format("{}", fmt::join(path.begin() + (path.size() > 1 ? 1 : 0), path.end(), "/"));
  auto it = std::find_if(out.begin(), out.end(), [&](const release_detail& d) { return d.name == name; });
  if (it == out.end()) it = out.insert(out.end(), release_detail{name, {}});
  it->values[release] = full_text_of(v, path.back());
  it->long_text = it->long_text || it->values[release] != text_of(v, path.back());
}

/// What the details of the releases say, by member.
std::vector<release_detail> details_of(const value& table) {
  std::vector<release_detail> out;
  if (const value* details = table.find("details"); details && details->members())
    for (const auto& [release, more] : *details->members()) list_details(more, "", release, out);
  return out;
}

/// Whether the grid of the releases has the member: others are listed below it, release by release.
bool shared(const release_detail& d) { return d.values.size() > 1 && !d.long_text; }

/// The table of releases turned round: a column for each, so that they stand side by side.
std::string release_grid(const value& table, const std::vector<release_detail>& details) {
  std::vector<std::string> pointers;
  for (const value& c : *table.find("columns")->items()) pointers.push_back(*c.string());
  const std::vector<std::string> names = short_names(pointers);
  page_rows out(1, {"release"});
  for (std::size_t i = 0; i < names.size(); ++i)
    if (pointers[i] != "/description") out.push_back({names[i]});
  for (const release_detail& d : details)
    if (shared(d)) out.push_back({d.name});
  for (const auto& [name, row] : *table.find("rows")->members()) {
    out[0].push_back(name);
    std::size_t line = 1;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (pointers[i] != "/description") out[line++].push_back(text_of((*row.items())[i]));
    for (const release_detail& d : details)
      if (shared(d)) out[line++].push_back(d.values.contains(name) ? d.values.at(name) : "-");
  }
  return output::grid(out, 2, output::table_columns);
}

/// What one release has and the grid has not.
std::string release_lists(const value& table, const std::vector<release_detail>& details) {
  std::string out;
  for (const auto& [name, row] : *table.find("rows")->members()) {
    page_rows rows;
    for (const release_detail& d : details)
      if (!shared(d) && d.values.contains(name)) rows.push_back({d.name, d.values.at(name)});
    if (!rows.empty()) out += fmt::format("\nRelease {} also has\n", name) + wrapped_table(rows);
  }
  return out;
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
                                                         const config::document& doc,
                                                         std::vector<std::string>& files) {
  std::vector<std::pair<std::string, page_rows>> out;
  for (const char* section : {"/training", "/inference", "/kernels", "/kernel_spreads", "/collectives"})
    for (const shown_member& m : members) {
      if (!m.pointer.starts_with(std::string(section) + "/")) continue;
      const std::size_t last = m.pointer.rfind('/');
      const std::string group = plain(m.pointer.substr(0, last)), key = plain(m.pointer.substr(last));
      auto it = std::find_if(out.begin(), out.end(), [&](const auto& g) { return g.first == group; });
      if (it == out.end()) it = out.insert(out.end(), {group, {}});
      it->second.push_back({key, text_of(*m.content, key), kind_of(m, doc), file_index(files, m.from)});
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

/// A member in which two stacks differ; null where a stack lacks it.
struct differing_member {
  std::string pointer;
  std::array<const shown_member*, 2> of;
};

/// The members in force of a stack.
struct members_in_force {
  value root;
  std::vector<shown_member> members;

  members_in_force(const config::document& doc, const platform* machine) : root(doc.resolved()) {
    if (machine) keep_machine(root, *machine);
    members = members_of(root, doc);
  }
  members_in_force(const members_in_force&) = delete;
  members_in_force& operator=(const members_in_force&) = delete;
};

const value& number_in(const shown_member& m) {
  const value* inner = m.content->find("value");
  return inner ? *inner : *m.content;
}

/// In the order of the first stack, then what only the second has.
std::vector<differing_member> differences(const members_in_force& a, const members_in_force& b) {
  const auto by_pointer = [](const members_in_force& s) {
    std::map<std::string_view, const shown_member*> out;
    for (const shown_member& m : s.members) out.emplace(m.pointer, &m);
    return out;
  };
  const auto in_a = by_pointer(a), in_b = by_pointer(b);
  std::vector<differing_member> out;
  for (const shown_member& m : a.members) {
    const auto other = in_b.find(m.pointer);
    if (other == in_b.end()) out.push_back({m.pointer, {&m, nullptr}});
    else if (to_json(number_in(m)) != to_json(number_in(*other->second)))
      out.push_back({m.pointer, {&m, other->second}});
  }
  for (const shown_member& m : b.members)
    if (!in_a.contains(m.pointer)) out.push_back({m.pointer, {nullptr, &m}});
  std::erase_if(out, [](const differing_member& d) {
    return d.pointer.find('/', 1) == std::string::npos;  // the name and the parts, no numbers
  });
  return out;
}

}  // namespace

std::string stack_difference_page(const shown_stack& a, const shown_stack& b, const platform* machine) {
  const members_in_force first(a.source, machine), second(b.source, machine);
  std::vector<std::pair<std::string, page_rows>> groups;
  for (const differing_member& d : differences(first, second)) {
    const std::size_t last = d.pointer.rfind('/');
    const std::string group = plain(d.pointer.substr(0, last)), key = plain(d.pointer.substr(last));
    auto it = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == group; });
    if (it == groups.end()) it = groups.insert(groups.end(), {group, {{"", a.content.name, b.content.name}}});
    const auto text = [&](const shown_member* m) { return m ? full_text_of(*m->content, key) : "-"; };
    it->second.push_back({key, text(d.of[0]), text(d.of[1])});
  }
  std::string out;
  for (const shown_stack& s : {a, b})
    for (const std::string& line :
         output::wrapped(fmt::format("{}: {}", s.content.name, s.content.description), output::table_columns))
      out += line + "\n";
  if (groups.empty()) out += "\nNo member differs.\n";
  for (const auto& [group, rows] : groups) out += fmt::format("\n{}\n", group) + wrapped_table(rows);
  return out;
}

value stack_difference_json(const shown_stack& a, const shown_stack& b, const platform* machine) {
  const members_in_force first(a.source, machine), second(b.source, machine);
  value::array members;
  for (const differing_member& d : differences(first, second)) {
    value::array values, files;
    for (const shown_member* m : d.of) {
      values.push_back(m ? number_in(*m) : value{});
      files.push_back(m ? value{m->from} : value{});
    }
    members.push_back(
        value::object{{"pointer", d.pointer}, {"values", std::move(values)}, {"from", std::move(files)}});
  }
  return value::object{{"schema", "nvlsim.stack_difference/1"},
                       {"names", value::array{a.content.name, b.content.name}},
                       {"members", std::move(members)}};
}

std::string stack_page(const stack& s, const config::document& doc, const platform* machine,
                       const value& releases) {
  const value root = doc.resolved();
  value listed = root;
  if (machine) keep_machine(listed, *machine);
  else drop_tables(listed);
  std::vector<std::string> files;
  std::string body;
  for (const auto& [group, members] : groups_of(members_of(listed, doc), doc, files))
    body += fmt::format("\n{}\n", group) + uncut(members);
  if (!machine) body += name_tables(root, doc, files);
  std::string out;
  for (const std::string& line :
       output::wrapped(fmt::format("{}: {}", s.name, s.description), output::table_columns))
    out += line + "\n";
  out += "\nFiles\n";
  for (std::size_t i = 0; i < files.size(); ++i)
    out += fmt::format("  {:<5}{}\n", fmt::format("[{}]", i + 1), files[i]);
  if (releases.members()) {
    const std::vector<release_detail> details = details_of(releases);
    out += "\nReleases\n" + release_grid(releases, details) + release_lists(releases, details);
  }
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
                                    {"kind", m.number ? value{kind_of(m, doc)} : value{}},
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
