#include "nvlsim/measurements/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "nvlsim/config/csv_records.hpp"
#include "nvlsim/config/read_file.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

template <class T>
std::optional<T> parsed(const std::string& cell, std::string_view column) {
  if (cell.empty()) return std::nullopt;
  T v{};
  const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), v);
  bool good = status == std::errc() && end == cell.data() + cell.size();
  if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(v);
  if (!good)
    throw cell_error(
        fmt::format("{}: \"{}\" is not {}", column, cell, std::is_integral_v<T> ? "an integer" : "a number"));
  return v;
}

}  // namespace

const std::string& csv_row::operator[](std::string_view column) const {
  static const std::string nothing;
  const auto it = columns_->find(column);
  return it == columns_->end() || it->second >= cells_.size() ? nothing : cells_[it->second];
}

std::optional<double> csv_row::number(std::string_view column) const {
  return parsed<double>((*this)[column], column);
}

std::optional<std::int64_t> csv_row::integer(std::string_view column) const {
  const std::optional<double> d = number(column);
  if (!d) return std::nullopt;
  if (*d != std::floor(*d) || std::abs(*d) > 1e15)
    throw cell_error(fmt::format("{}: \"{}\" is not an integer", column, (*this)[column]));
  return static_cast<std::int64_t>(*d);
}

bool csv_table::has(std::string_view column) const {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

namespace {

/// Tables written by hand have prose without quotes. In a row with too many cells a comma before a space belongs
/// to the text.
void join_prose(std::vector<std::string>& row, std::size_t wanted) {
  for (std::size_t i = 1; i < row.size() && row.size() > wanted;) {
    if (!row[i].starts_with(' ')) {
      ++i;
      continue;
    }
    row[i - 1] += ',' + row[i];
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

csv_table read_csv(const std::filesystem::path& file) {
  auto all = config::csv_records(read_file(file), file.string());
  if (all.empty()) throw input_error({{file.string(), "", "the file is empty: no header line", {}}});
  csv_table out;
  out.stem = file.stem().string();
  out.columns = all.front();
  auto columns = std::make_shared<std::map<std::string, std::size_t, std::less<>>>();
  std::vector<problem> problems;
  for (std::size_t i = 0; i < out.columns.size(); ++i)
    if (!columns->emplace(out.columns[i], i).second && !out.columns[i].empty())
      problems.push_back({file.string(), "", fmt::format("column {} occurs twice", out.columns[i]), {}});
  for (std::size_t i = 1; i < all.size(); ++i) {
    join_prose(all[i], out.columns.size());
    if (all[i].size() != out.columns.size())
      problems.push_back({file.string(),
                          "",
                          fmt::format("row {}: {} cells, but {} columns", i, all[i].size(), out.columns.size()),
                          {}});
    out.rows.emplace_back(columns, std::move(all[i]));
  }
  if (!problems.empty()) throw input_error(std::move(problems));
  return out;
}

double need(const csv_row& row, std::string_view column) {
  const auto x = row.number(column);
  if (!x) throw cell_error(fmt::format("{} is blank", column));
  if (!(*x > 0)) throw cell_error(fmt::format("{} is {}, not positive", column, *x));
  return *x;
}

std::optional<double> published_value(const csv_row& row, std::string_view column) {
  return row[column].empty() ? std::nullopt : std::optional(need(row, column));
}

}  // namespace nvlsim
