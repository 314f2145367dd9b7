#include "nvlsim/output/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t max_rows = 20, max_settings = 4, widest_cell = 24;

/// Metrics that the table shows where a point has them, the most telling first; of distributions the mean.
std::vector<std::string> telling() {
  std::vector<std::string> out;
  for (const std::string_view name : metric_names([](const metric& m) { return m.telling > 0; }))
    out.push_back(std::string(name) + (find_metric(name)->is_distribution ? ".mean" : ""));
  return out;
}

std::string setting_text(const value& v) {
  std::string text = v.string() ? *v.string() : to_json(v, 0);
  while (text.ends_with('\n')) text.pop_back();
  return output::one_line(text, widest_cell);
}

const value* setting_of(const sweep_row& p, const std::string& pointer) {
  const auto it = std::find_if(p.set.rbegin(), p.set.rend(), [&](const auto& s) { return s.first == pointer; });
  return it == p.set.rend() ? nullptr : &it->second;
}

/// Pointers whose values differ between the points, in file order.
std::vector<std::string> varied(const std::vector<sweep_row>& points) {
  std::vector<std::string> all, out;
  for (const sweep_row& p : points)
    for (const auto& [pointer, v] : p.set) output::merge_names(all, pointer);
  for (const std::string& pointer : all) {
    std::set<std::string> values;
    for (const sweep_row& p : points) {
      const value* v = setting_of(p, pointer);
      values.insert(v ? to_json(*v, 0) : std::string());
    }
    if (values.size() > 1 && out.size() < max_settings) out.push_back(pointer);
  }
  return out;
}

std::vector<output::flat_metric> metrics_of_record(const value& record) {
  const value* metrics = record.find("metrics");
  return metrics && metrics->members() ? output::flat_metrics(*metrics) : std::vector<output::flat_metric>{};
}

std::string metric_cell(const std::vector<output::flat_metric>& all, std::string_view name) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& m) { return m.name == name; });
  return it == all.end() || it->content.is_null() ? "-" : output::scaled(it->key, it->content);
}

std::size_t columns_of(const std::vector<std::vector<std::string>>& rows) {
  std::size_t all = 2;
  for (std::size_t c = 0; c < rows.front().size(); ++c) {
    std::size_t widest = 0;
    for (const auto& row : rows) widest = std::max(widest, output::width(row[c]));
    all += widest + 2;
  }
  return all;
}

}  // namespace

std::string sweep_table(const std::vector<sweep_row>& points) {
  std::vector<const sweep_row*> ran;
  for (const sweep_row& p : points)
    if (!metrics_of_record(p.record).empty()) ran.push_back(&p);
  if (ran.empty()) return {};
  const std::vector<std::string> settings = varied(points);
  std::vector<std::string> metrics;
  for (const std::string& name : telling())
    if (std::any_of(ran.begin(), ran.end(),
                    [&](const sweep_row* p) { return metric_cell(metrics_of_record(p->record), name) != "-"; }))
      metrics.push_back(name);
  std::vector<std::vector<std::string>> rows = {{"point"}};
  for (const std::string& s : settings)
    rows.front().push_back(output::one_line(s.substr(s.rfind('/') + 1), widest_cell));
  rows.front().insert(rows.front().end(), metrics.begin(), metrics.end());
  for (std::size_t i = 0; i < std::min(max_rows, ran.size()); ++i) {
    const auto all = metrics_of_record(ran[i]->record);
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(std::to_string(ran[i]->index));
    for (const std::string& s : settings) {
      const value* v = setting_of(*ran[i], s);
      row.push_back(v ? setting_text(*v) : "-");
    }
    for (const std::string& m : metrics) row.push_back(metric_cell(all, m));
  }
  while (columns_of(rows) > output::table_columns && rows.front().size() > settings.size() + 2)
    for (auto& row : rows) row.pop_back();
  std::string out = output::grid(rows, 2);
  if (ran.size() > max_rows)
    out += fmt::format("  and {} more points that ran; results.csv of nvlsim sweep merge has all\n",
                       ran.size() - max_rows);
  return out;
}

}  // namespace nvlsim
