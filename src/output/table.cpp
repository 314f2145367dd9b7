// Formats results as plain text for a terminal of 80 columns.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

using output::section_row;
using output::table_columns;

constexpr std::size_t bar_columns = 20;

std::string bullets(const std::vector<std::string>& texts, std::string_view prefix = {}) {
  std::string out;
  for (const std::string& t : texts) {
    std::string mark = "  - ";
    for (const std::string& line : output::wrapped(std::string(prefix) + t, table_columns - mark.size())) {
      out += mark + line + '\n';
      mark = "    ";
    }
  }
  return out;
}

/// The band of a metric. Omits the unit if both ends and the metric share it, to fit in 80 columns.
std::string band_text(const result& r, const std::string& key, const std::string& metric) {
  const value* band = r.bands.find(key);
  if (!band || !band->items() || band->items()->size() != 2) return {};
  const value &from = band->items()->front(), &to = band->items()->back();
  const std::string unit = metric.substr(std::min(metric.find(' '), metric.size()));
  double min = 0, max = 0;
  if (unit.ends_with("tok/s") && output::as_double(from, min) && output::as_double(to, max) && max >= 1e6)
    return fmt::format("90 %: {:.4g}{} .. {:.4g}{}", min / 1e6, unit == " tok/s" ? " M" : "", max / 1e6,
                       unit == " tok/s" ? " M" : "");
  std::string low = output::scaled(key, from), high = output::scaled(key, to);
  if (low.ends_with(unit) && high.ends_with(unit)) {
    low.resize(low.size() - unit.size());
    high.resize(high.size() - unit.size());
  }
  return fmt::format("90 %: {} .. {}", low, high);
}

std::string metric_section(const result& r) {
  std::vector<std::vector<std::string>> scalars, distributions;
  for (const auto& [key, v] : *r.metrics.members()) {
    if (!v.members()) {
      std::string metric = output::scaled(key, v), band = band_text(r, key, metric);
      scalars.push_back({key, std::move(metric), std::move(band)});
      continue;
    }
    std::vector<std::string> row = {key};
    for (const statistic& s : statistics) {
      const value* x = v.find(s.name);
      row.push_back(x ? output::scaled(key, *x) : "-");
    }
    distributions.push_back(std::move(row));
  }
  std::string out = output::grid(scalars, 2);
  if (distributions.empty()) return out;
  std::vector<std::string> head = {""};
  for (const statistic& s : statistics) head.emplace_back(s.name);
  distributions.insert(distributions.begin(), std::move(head));
  return out + (out.empty() ? "" : "\n") + output::grid(distributions, 2);
}

bool is_total(std::string_view key) {
  return key.starts_with("peak") || key.starts_with("usable") || key.starts_with("total") ||
         key.starts_with("step_time") || key.starts_with("makespan");
}

/// Says which rows of a section are parts of a whole, and which value is the whole.
struct whole {
  std::string_view unit;  ///< key suffix of its parts
  std::vector<std::string_view> names;
};

bool is_part(const section_row& row, const whole& w) {
  double ignored = 0;
  return row.key.ends_with(w.unit) && !row.key.ends_with("per_s") && !is_total(row.key) &&
         output::as_double(row.content, ignored);
}

/// Finds the whole in the section or in the metrics.
std::optional<double> find_whole(const result& r, const value& section, const whole& w) {
  for (const std::string_view n : w.names)
    for (const value* from : {&section, &r.metrics})
      if (const value* v = from->find(n)) {
        double d = 0;
        if (output::as_double(*v, d) && d > 0) return d;
      }
  return std::nullopt;
}

std::string bar(double share) {
  const double cells = std::clamp(share, 0.0, 1.0) * static_cast<double>(bar_columns);
  return std::string(static_cast<std::size_t>(std::lround(cells)), '#');
}

/// Rows with their percentage of the whole and a bar or reason.
std::string share_section(const result& r, const value& section, const whole& w) {
  const auto rows = output::rows_of(section);
  const auto all = find_whole(r, section, w);
  std::size_t labels = 0, values = 0;
  for (const section_row& row : rows) {
    labels = std::max(labels, 2 * row.depth + output::width(row.label));
    values = std::max(values, output::width(output::scaled(row.key, row.content)));
  }
  labels = std::min<std::size_t>(labels, 40);
  std::string out;
  for (const section_row& row : rows) {
    const std::string label = output::one_line(std::string(2 * row.depth, ' ') + row.label, labels);
    std::string line = "  " + output::padded_right(label, labels);
    if (!row.heading) line += "  " + output::padded_left(output::scaled(row.key, row.content), values);
    double part = 0;
    if (all && is_part(row, w) && output::as_double(row.content, part) && part <= *all * (1 + 1e-9)) {
      line += fmt::format("  {:5.1f} %", 100 * part / *all);
      if (row.reason.empty()) line += "  " + bar(part / *all);
    }
    const std::size_t left = 2 + labels + 2 + values + 9 + 2;
    const std::size_t room = table_columns > left + 20 ? table_columns - left : 20;
    for (const std::string& text : output::wrapped(row.reason, room)) {
      out += output::padded_right(line, left) + text + '\n';
      line.clear();
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) out += line + '\n';
  }
  return out;
}

/// Whether a value is an object of objects, such as the stages of a pipeline.
bool is_matrix(const value& v) {
  const auto* o = v.members();
  return o && !o->empty() &&
         std::all_of(o->begin(), o->end(), [](const value::member& m) { return m.second.members() != nullptr; });
}

/// Percentages of each member's whole, one column per member. Counts the members that do not fit.
std::string matrix(const result& r, const std::string& title, const value& table, const whole& w) {
  const value::object& columns = *table.members();
  std::vector<std::string> names;
  for (const auto& [key, column] : columns)
    for (const section_row& row : output::rows_of(column))
      if (is_part(row, w)) output::merge_names(names, row.label);
  std::size_t labels = title.size() + 2, cells = 5;
  for (const std::string& n : names) labels = std::max(labels, 1 + output::width(n));
  for (const auto& [key, column] : columns) cells = std::max(cells, std::min<std::size_t>(output::width(key), 10));
  const std::size_t fitting =
      std::max<std::size_t>(1, (table_columns - 2 - std::min<std::size_t>(labels, 40)) / (cells + 2));
  const std::size_t shown = std::min(columns.size(), fitting);

  std::vector<std::vector<std::string>> rows = {{title + " %"}};
  for (std::size_t i = 0; i < shown; ++i) rows[0].push_back(output::one_line(columns[i].first, cells));
  for (const std::string& n : names) {
    rows.push_back({' ' + n});
    for (std::size_t i = 0; i < shown; ++i) {
      const auto all = find_whole(r, columns[i].second, w);
      double part = 0;
      const value* v = columns[i].second.find(n);
      const bool there = v && all && output::as_double(*v, part);
      rows.back().push_back(there ? fmt::format("{:.1f}", 100 * part / *all) : "-");
    }
  }
  std::string out = output::grid(rows, 2);
  if (shown < columns.size()) out += fmt::format("  and {} more in the JSON result\n", columns.size() - shown);
  return out;
}

/// Whether a value is a list of objects with several figures each and no reason.
bool is_record_list(const value& v) {
  const auto* items = v.items();
  return items && !items->empty() && std::all_of(items->begin(), items->end(), [](const value& x) {
           return x.members() && !x.find("reason") && x.members()->size() > 2;
         });
}

/// Longer lists are cut in tables.
constexpr std::size_t max_records = 24;

std::size_t widest(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  std::size_t out = 0;
  for (const auto& row : rows) out = std::max(out, output::width(row[column]));
  return out;
}

/// The name and the figures of each object in a line, as many columns as fit.
std::string record_table(const std::string& title, const value::array& list) {
  const std::size_t shown = std::min(list.size(), max_records);
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> rows = {{title}};
  for (std::size_t i = 0; i < shown; ++i) {
    const value* name = list[i].find("name");
    rows.push_back({' ' + (name && name->string() ? output::one_line(*name->string(), 28) : std::to_string(i))});
    for (const auto& [key, v] : *list[i].members())
      if (key != "name" && !v.members() && !v.items() && std::find(keys.begin(), keys.end(), key) == keys.end())
        keys.push_back(key);
  }
  std::size_t used = 2 + widest(rows, 0);
  for (const std::string& key : keys) {
    rows[0].push_back(key);
    for (std::size_t i = 0; i < shown; ++i) {
      const value* v = list[i].find(key);
      rows[i + 1].push_back(v ? output::scaled(key, *v) : "-");
    }
    used += widest(rows, rows[0].size() - 1) + 2;
    if (used <= table_columns) continue;
    for (auto& row : rows) row.pop_back();
    break;
  }
  std::string out = output::grid(rows, 2);
  if (shown < list.size()) out += fmt::format("  and {} more in the JSON result\n", list.size() - shown);
  return out;
}

std::string breakdown_section(const result& r, const whole& w) {
  value plain{value::object{}};
  std::string matrices;
  for (const auto& [key, v] : *r.breakdown.members()) {
    if (is_matrix(v)) matrices += matrix(r, key, v, w);
    else if (is_record_list(v)) matrices += record_table(key, *v.items());
    else plain.set(key, v);
  }
  return share_section(r, plain, w) + matrices;
}

std::string plain_section(const value& section) {
  std::vector<std::vector<std::string>> cells;
  for (const section_row& row : output::rows_of(section)) {
    const std::string label = std::string(2 * row.depth, ' ') + output::one_line(row.label, 40);
    if (row.heading) cells.push_back({label});
    else cells.push_back({label, output::one_line(output::scaled(row.key, row.content), 34)});
  }
  return output::grid(cells, 2);
}

void add_section(std::string& out, std::string_view title, const std::string& body) {
  if (!body.empty()) out += fmt::format("\n{}\n{}", title, body);
}

const whole step_time{"_s", {"step_time_s", "makespan_s", "time_s"}};
const whole peak_memory{"bytes", {"peak_bytes", "memory_peak_bytes", "total_bytes"}};

std::string one_result(const result& r) {
  std::string out = fmt::format("{}: {}\n", output::one_line(r.name, table_columns - 12), name(r.status));
  out += bullets(r.reasons);
  add_section(out, "metrics", metric_section(r));
  add_section(out, "breakdown", breakdown_section(r, step_time));
  add_section(out, "memory", share_section(r, r.memory, peak_memory));
  add_section(out, "energy", plain_section(r.energy));
  add_section(out, "cost", plain_section(r.cost));
  add_section(out, "notes", bullets(r.notes));
  return out;
}

/// One line of the side-by-side table. A title has no cells.
struct table_line {
  std::string label;
  std::vector<std::string> cells;
};

/// The cell for a result without the row; "-" stands for an unknown value.
constexpr std::string_view absent = "";

/// Collects the cells of a section by row label.
template <class Rows, class Label>
std::vector<table_line> side_by_side(const std::vector<Rows>& by_result, Label label) {
  std::vector<std::string> names;
  for (const Rows& rows : by_result)
    for (const auto& row : rows) output::merge_names(names, label(row));
  std::vector<table_line> out;
  for (const std::string& n : names) {
    table_line line{n, {}};
    for (const Rows& rows : by_result) {
      const auto it = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return label(row) == n; });
      line.cells.push_back(it == rows.end() ? std::string(absent)
                                            : output::one_line(output::scaled(it->key, it->content), 20));
    }
    out.push_back(std::move(line));
  }
  return out;
}

bool in_summary(const output::flat_metric& m) {
  const std::size_t dot = m.name.rfind('.');
  if (dot == std::string::npos) return true;
  const std::string_view statistic = std::string_view(m.name).substr(dot + 1);
  return statistic == "mean" || statistic == "p50" || statistic == "p99";
}

std::vector<table_line> metric_lines(std::span<const result> results) {
  std::vector<std::vector<output::flat_metric>> by_result;
  for (const result& r : results) {
    auto metrics = output::flat_metrics(r.metrics);
    std::erase_if(metrics, [](const auto& m) { return !in_summary(m); });
    by_result.push_back(std::move(metrics));
  }
  return side_by_side(by_result, [](const output::flat_metric& m) { return m.name; });
}

std::vector<table_line> section_lines(std::span<const result> results, value result::*section) {
  std::vector<std::vector<section_row>> by_result;
  for (const result& r : results) {
    auto rows = output::rows_of(r.*section);
    std::erase_if(rows, [](const section_row& row) { return row.heading || row.depth > 1; });
    by_result.push_back(std::move(rows));
  }
  return side_by_side(by_result, [](const section_row& row) { return row.label; });
}

/// Lists every sentence once, preceded by the columns it applies to, unless it applies to all.
std::string shared_bullets(std::span<const result> results, const std::vector<std::string>& heads,
                           std::vector<std::string> result::*texts) {
  std::vector<std::string> sentences;
  for (const result& r : results)
    for (const std::string& t : r.*texts) output::merge_names(sentences, t);
  std::string out;
  for (const std::string& t : sentences) {
    std::vector<std::string> who;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& said = results[i].*texts;
      if (std::find(said.begin(), said.end(), t) != said.end()) who.push_back(heads[i]);
    }
    out += bullets({t}, who.size() == results.size() ? "" : fmt::format("{}: ", fmt::join(who, ", ")));
  }
  return out;
}

std::string column_block(const std::vector<std::string>& heads, const std::vector<table_line>& lines,
                         std::size_t first, std::size_t last) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& label, const std::vector<std::string>& cells) {
    rows.push_back({label});
    rows.back().insert(rows.back().end(), cells.begin() + static_cast<std::ptrdiff_t>(first),
                       cells.begin() + static_cast<std::ptrdiff_t>(last));
  };
  add("", heads);
  const std::string* title = nullptr;
  for (const table_line& line : lines) {
    if (line.cells.empty()) {
      title = &line.label;
      continue;
    }
    const auto begin = line.cells.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = line.cells.begin() + static_cast<std::ptrdiff_t>(last);
    if (std::all_of(begin, end, [](const std::string& c) { return c == absent; })) continue;
    if (title) rows.push_back({*std::exchange(title, nullptr)});
    add(line.label, line.cells);
  }
  return output::grid(rows, 0);
}

std::string result_columns(std::span<const result> results) {
  std::vector<std::string> heads, status;
  const bool short_names =
      std::all_of(results.begin(), results.end(), [](const result& r) { return output::width(r.name) <= 20; });
  std::string out;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string who = output::one_line(results[i].name, table_columns - 8);
    heads.push_back(short_names ? who : fmt::format("[{}]", i + 1));
    if (!short_names) out += fmt::format("{}  {}\n", heads.back(), who);
    status.emplace_back(name(results[i].status));
  }
  if (!short_names) out += '\n';

  std::vector<table_line> lines = {{"status", status}};
  const auto add = [&](std::string_view title, std::vector<table_line> more) {
    if (more.empty()) return;
    lines.push_back({std::string(title), {}});
    for (table_line& line : more) lines.push_back({"  " + line.label, std::move(line.cells)});
  };
  add("metrics", metric_lines(results));
  add("breakdown", section_lines(results, &result::breakdown));
  add("memory", section_lines(results, &result::memory));

  std::size_t labels = 0, cells = 0;
  for (const std::string& h : heads) cells = std::max(cells, output::width(h));
  for (const table_line& line : lines) {
    labels = std::max(labels, output::width(line.label));
    for (const std::string& c : line.cells) cells = std::max(cells, output::width(c));
  }
  const std::size_t room = labels < table_columns ? table_columns - labels : 0;
  const std::size_t per_block = std::max<std::size_t>(1, room / (cells + 2));
  for (std::size_t first = 0; first < results.size(); first += per_block)
    out +=
        (first > 0 ? "\n" : "") + column_block(heads, lines, first, std::min(first + per_block, results.size()));

  add_section(out, "reasons", shared_bullets(results, heads, &result::reasons));
  add_section(out, "notes", shared_bullets(results, heads, &result::notes));
  return out;
}

}  // namespace

std::string result_table(std::span<const result> results) {
  if (results.empty()) return {};
  return results.size() == 1 ? one_result(results.front()) : result_columns(results);
}

std::span<const std::string> result_format_names() {
  static const std::array<std::string, 4> names = {"table", "json", "csv", "megatron-log"};
  return names;
}

std::string render(std::span<const result> results, result_format format) {
  switch (format) {
    case result_format::table:
      return result_table(results);
    case result_format::json:
      return results_json(results);
    case result_format::csv:
      return result_csv(results);
    case result_format::megatron_log:
      return megatron_log(results);
  }
  throw internal_error("unknown result format");
}

}  // namespace nvlsim
