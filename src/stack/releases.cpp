#include "nvlsim/stack/releases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace nvlsim {
namespace {

constexpr const char* rows_at = "/releases/rows";
constexpr const char* details_at = "/releases/details";

const std::vector<std::string>& table_members() {
  static const std::vector<std::string> names = {"kind", "source", "columns", "rows", "details"};
  return names;
}

std::string cell_pointer(std::string_view release, std::size_t column) {
  return pointer_to(pointer_to(rows_at, release), std::to_string(column));
}

std::vector<std::string> columns_of(const value& root) {
  std::vector<std::string> out;
  const value* columns = root.at_pointer("/releases/columns");
  if (columns && columns->items())
    for (const value& c : *columns->items()) out.push_back(c.string() ? *c.string() : "");
  return out;
}

/// A number or a quantity, which takes the source of the table.
bool needs_source(const std::string& column, const value& cell) {
  if (std::count(column.begin(), column.end(), '/') == 1) return false;  // a description, the name of a library
  if (const std::string* s = cell.string())
    return !s->empty() && std::string_view("0123456789.-").find((*s)[0]) != std::string_view::npos;
  return cell.number() || cell.integer();
}

/// The row as members of a stack.
stack_layer row_layer(const value& root, const std::string& name, const config::origin& by) {
  stack_layer out{value{value::object{}}, by};
  config::document row;
  row.root = value{value::object{}};
  diagnostics none;  // the columns were checked
  const value *kind = root.at_pointer("/releases/kind"), *source = root.at_pointer("/releases/source");
  const value::array& cells = *root.at_pointer(pointer_to(rows_at, name))->items();
  const std::vector<std::string> columns = columns_of(root);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (cells[i].is_null()) continue;  // as the framework has it
    value v = cells[i];
    if (kind && source && needs_source(columns[i], v))
      v = value{value::object{{"value", v}, {"kind", *kind}, {"source", *source}}};
    config::override_value(row, columns[i], std::move(v), by, none);
    out.cells.emplace_back(columns[i], cell_pointer(name, i));
  }
  out.own = std::move(row.root);
  return out;
}

void check_columns(const value& table, const std::string& file, diagnostics& problems) {
  const value* columns = table.find("columns");
  const std::string at = "/releases/columns";
  if (!columns || !columns->items())
    return problems.add(file, at, "expected an array of JSON pointers, one for each column");
  std::set<std::string> seen;
  for (std::size_t i = 0; i < columns->items()->size(); ++i) {
    const std::string* c = (*columns->items())[i].string();
    const std::string here = pointer_to(at, std::to_string(i));
    if (!c || !c->starts_with('/'))
      problems.add(file, here, "a column is the JSON pointer of a member, such as \"/inference/release_factor\"");
    else if (!seen.insert(*c).second) problems.add(file, here, fmt::format("column \"{}\" is there twice", *c));
  }
}

void check_rows(const value& table, const std::string& file, diagnostics& problems) {
  const value* rows = table.find("rows");
  if (!rows || !rows->members())
    return problems.add(file, rows_at, "expected an object: release -> array of cells");
  const value* columns = table.find("columns");
  const std::size_t wanted = columns && columns->items() ? columns->items()->size() : 0;
  for (const auto& [name, row] : *rows->members()) {
    const std::string at = pointer_to(rows_at, name);
    if (!row.items()) problems.add(file, at, fmt::format("expected an array of cells, found {}", row.type_name()));
    else if (row.items()->size() != wanted)
      problems.add(file, at,
                   fmt::format("has {} cells for {} columns; null stands for what all releases have in common",
                               row.items()->size(), wanted));
  }
}

void check_details(const value& table, const std::string& file, diagnostics& problems) {
  const value* details = table.find("details");
  if (!details) return;
  if (!details->members())
    return problems.add(file, details_at, fmt::format("expected an object, found {}", details->type_name()));
  std::vector<std::string> known;
  if (const value* rows = table.find("rows"); rows && rows->members())
    for (const auto& [name, row] : *rows->members()) known.push_back(name);
  const auto is_row = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  for (const auto& [name, v] : *details->members()) {
    const std::string at = pointer_to(details_at, name);
    if (!v.members()) problems.add(file, at, fmt::format("expected an object, found {}", v.type_name()));
    if (!is_row(name)) problems.add(file, at, "no row has this name", nearest(name, known));
    const value* base = v.find("base");
    if (base && (!base->string() || !is_row(*base->string())))
      problems.add(file, pointer_to(at, "base"), "expected the name of a release of this table",
                   base->string() ? nearest(*base->string(), known) : "");
  }
}

/// A framework's file, and where its layers go.
struct layering {
  const value& root;
  const config::origin& by;
  std::vector<stack_layer>& out;
  diagnostics& problems;
};

/// Adds the layers of `name` behind those of the release it builds on. `above`: the releases that build on it.
void add_layers(const layering& l, const std::string& name, std::set<std::string>& above) {
  const auto& [root, by, out, problems] = l;
  const std::string at = pointer_to(details_at, name);
  if (!above.insert(name).second)
    return problems.add(by.where, pointer_to(at, "base"), fmt::format("\"{}\" is its own base", name));
  const value* details = root.at_pointer(at);
  if (const value* base = details ? details->find("base") : nullptr) add_layers(l, *base->string(), above);
  config::origin here = by;
  here.label += ", release " + name;
  out.push_back(row_layer(root, name, here));
  if (!details) return;
  stack_layer more{*details, here, at};
  std::erase_if(*more.own.members(), [](const value::member& m) { return m.first == "base"; });
  out.push_back(std::move(more));
}

}  // namespace

std::string pointer_in_file(const stack_layer& l, const std::string& pointer) {
  const auto cell =
      std::find_if(l.cells.begin(), l.cells.end(), [&](const auto& c) { return c.first == pointer; });
  return cell == l.cells.end() ? l.below + pointer : cell->second;
}

std::vector<std::string> release_names(const value& root) {
  std::vector<std::string> out;
  const value* rows = root.at_pointer(rows_at);
  if (rows && rows->members())
    for (const auto& [name, row] : *rows->members()) out.push_back(name);
  return out;
}

void check_releases(const value& root, const std::string& file, diagnostics& problems) {
  const value* table = root.find("releases");
  if (!table || table->is_null()) return;
  if (!table->members())
    return problems.add(file, "/releases", fmt::format("expected an object, found {}", table->type_name()));
  for (const auto& [key, v] : *table->members())
    if (const auto& known = table_members(); std::find(known.begin(), known.end(), key) == known.end())
      problems.add(file, pointer_to("/releases", key), "unknown member", nearest(key, known));
  check_columns(*table, file, problems);
  check_rows(*table, file, problems);
  check_details(*table, file, problems);
}

std::vector<stack_layer> release_layers(const value& root, const std::string& name, const config::origin& by,
                                        diagnostics& problems) {
  std::vector<stack_layer> out;
  std::set<std::string> above;
  add_layers({root, by, out, problems}, name, above);
  return out;
}

std::string release_pointer(const value& root, std::string_view name, std::string_view pointer) {
  const std::vector<std::string> columns = columns_of(root);
  const auto it = std::find(columns.begin(), columns.end(), pointer);
  if (it != columns.end()) return cell_pointer(name, static_cast<std::size_t>(it - columns.begin()));
  return pointer_to(details_at, name) + std::string(pointer);
}

}  // namespace nvlsim
