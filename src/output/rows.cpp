#include "nvlsim/output/rows.hpp"

#include <algorithm>

#include "nvlsim/output/number.hpp"

namespace nvlsim::output {
namespace {

void add_rows(const value::object& members, std::size_t depth, std::vector<section_row>& out);

section_row item_row(const value::object& item, std::size_t depth, const std::string& parent) {
  section_row row{depth, parent, parent, value{}, {}, false};
  for (const auto& [key, v] : item) {
    if (key == "name" && v.string()) row.label = *v.string();
    else if (key == "reason" && v.string()) row.reason = *v.string();
    else if (row.content.is_null() && is_number(v)) row.key = key, row.content = v;
  }
  return row;
}

void add_row(const std::string& key, const value& v, std::size_t depth, std::vector<section_row>& out) {
  if (const auto* o = v.members()) {
    if (o->empty()) return;
    out.push_back({depth, key, key, value{}, {}, true});
    add_rows(*o, depth + 1, out);
    return;
  }
  const auto* a = v.items();
  if (!a) {
    out.push_back({depth, key, key, v, {}, false});
    return;
  }
  out.push_back({depth, key, key, value{}, {}, true});
  for (std::size_t i = 0; i < a->size(); ++i) {
    const std::string index = std::to_string(i);
    if (const auto* item = (*a)[i].members()) {
      section_row row = item_row(*item, depth + 1, key);
      if (row.label == key) row.label = index;
      out.push_back(std::move(row));
    } else {
      out.push_back({depth + 1, index, key, (*a)[i], {}, false});
    }
  }
}

void add_rows(const value::object& members, std::size_t depth, std::vector<section_row>& out) {
  for (const auto& [key, v] : members) add_row(key, v, depth, out);
}

}  // namespace

std::vector<section_row> rows_of(const value& section) {
  std::vector<section_row> out;
  if (const auto* o = section.members()) add_rows(*o, 0, out);
  return out;
}

std::vector<flat_metric> flat_metrics(const value& metrics) {
  std::vector<flat_metric> out;
  if (!metrics.members()) return out;
  for (const auto& [key, v] : *metrics.members()) {
    if (const auto* o = v.members())
      for (const auto& [stat, inner] : *o) out.push_back({key + '.' + stat, key, inner});
    else out.push_back({key, key, v});
  }
  return out;
}

void merge_names(std::vector<std::string>& into, std::string_view name) {
  if (std::find(into.begin(), into.end(), name) == into.end()) into.emplace_back(name);
}

}  // namespace nvlsim::output
