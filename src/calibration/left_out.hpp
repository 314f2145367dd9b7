// Shared by all fits: errors in a report, and leaving out rows group by group.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/error_summary.hpp"
#include "nvlsim/calibration/fit.hpp"

namespace nvlsim {

/// Adds the errors on fitted rows to the report.
void enter_fitted(fit_report& out, const error_summary& e);
/// The report entry for a left-out group.
fit_report::left_out left_out_of(std::string group, const error_summary& e);

/// A number that depends on the text alone, on every platform.
std::uint64_t hash_of(const std::string& text);
/// "part  1" to "part 12", by what is left out together: configurations, cells.
std::string twelfth_of(const std::string& text);
/// "third 1" to "third 3", by the row's id. Independent of platform and of the other rows.
std::string third_of(const std::string& id);

/// The left-out rows of one group, and all other rows.
template <class Row>
struct split_rows {
  std::string group;
  std::vector<Row*> left, kept;
};

/// Splits by each group in turn, in order of names. Skips a group that contains all rows.
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
