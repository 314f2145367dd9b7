// What the fits have in common: their errors in a report, and rows left out group by group.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/error_summary.hpp"
#include "nvlsim/calibration/fit.hpp"

namespace nvlsim {

/// Enters the errors on the rows that were fitted.
void enter_fitted(fit_report& out, const error_summary& e);
/// Those of a group that was left out.
fit_report::left_out left_out_of(std::string group, const error_summary& e);

/// "third 1" to "third 3", by the row's id: the same everywhere and whatever rows there are.
std::string third_of(const std::string& id);

/// Rows of one group, which are left out, and all others.
template <class Row>
struct split_rows {
  std::string group;
  std::vector<Row*> left, kept;
};

/// Each group in turn, by name; a group of all rows is none.
template <class Row, class GroupOf>
std::vector<split_rows<Row>> split_by_group(const std::vector<Row*>& rows, GroupOf group_of) {
  std::map<std::string, split_rows<Row>> groups;
  for (Row* r : rows) groups[group_of(*r)].left.push_back(r);
  std::vector<split_rows<Row>> out;
  for (auto& [name, g] : groups) {
    g.group = name;
    for (Row* r : rows)
      if (group_of(*r) != name) g.kept.push_back(r);
    if (!g.kept.empty()) out.push_back(std::move(g));
  }
  return out;
}

}  // namespace nvlsim
