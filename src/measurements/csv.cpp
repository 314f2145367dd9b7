#include "nvlsim/measurements/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
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

namespace {

/// Columns that count GPUs or split them, as a scenario bounds them; products of two are exact.
constexpr std::array<std::string_view, 13> of_gpus = {
    "gpus",  "nodes", "tp", "pp",           "cp",          "vp",
    "ep",    "etp",   "dp", "prefill_gpus", "decode_gpus", "gpus_per_nvlink_domain",
    "moe_tp"};
constexpr std::array<std::string_view, 2> of_experts = {"experts", "topk"};
/// Columns of requests that a row makes the simulator play one by one.
constexpr std::array<std::string_view, 4> request_columns = {"concurrency", "batch_limit_per_instance",
                                                             "num_prompts", "micro_batch"};

std::int64_t largest_in(std::string_view column) {
  const auto among = [&](const auto& names) {
    return std::find(names.begin(), names.end(), column) != names.end();
  };
  constexpr std::int64_t gpus = 1 << 20, experts = 1 << 16, requests = 1 << 20,
                         other = std::numeric_limits<std::int32_t>::max();
  return among(of_gpus) ? gpus : among(of_experts) ? experts : among(request_columns) ? requests : other;
}

}  // namespace

const std::string& csv_row::operator[](std::string_view column) const {
  static const std::string nothing;
  const auto it = columns_->find(column);
  return it == columns_->end() || it->second >= cells_.size() ? nothing : cells_[it->second];
}

std::optional<double> csv_row::number(std::string_view column) const {
  const std::optional<double> d = parsed<double>((*this)[column], column);
  // Products and quotients of a few of these are numbers, too.
  constexpr double smallest = 1e-30, largest = 1e30;
  if (d && *d != 0 && !(std::abs(*d) >= smallest && std::abs(*d) <= largest))
    throw cell_error(
        fmt::format("{}: {} is not 0 and not from {:g} to {:g}", column, (*this)[column], smallest, largest));
  return d;
}

std::optional<std::int64_t> csv_row::integer(std::string_view column) const {
  const std::optional<double> d = number(column);
  if (!d) return std::nullopt;
  if (*d != std::floor(*d)) throw cell_error(fmt::format("{}: \"{}\" is not an integer", column, (*this)[column]));
  const double most = static_cast<double>(largest_in(column));
  if (std::abs(*d) > most)
    throw cell_error(fmt::format("{}: {} is more than {:.0f}", column, (*this)[column], most));
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
  if (out.rows.empty()) problems.push_back({file.string(), "", "the table has a header and no rows", {}});
  if (!problems.empty()) throw input_error(std::move(problems));
  return out;
}

int need_count(const csv_row& row, std::string_view column) {
  const auto n = row.integer(column);
  if (!n) throw cell_error(fmt::format("{} is blank", column));
  if (*n < 1) throw cell_error(fmt::format("{} is {}, not positive", column, *n));
  return static_cast<int>(*n);
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
