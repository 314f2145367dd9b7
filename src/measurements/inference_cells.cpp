#include "measurements/inference_cells.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace nvlsim {
namespace {

/// Parses a number in a length: "8192", "1k" (1,024).
std::optional<double> length_in(std::string_view text) {
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  constexpr double longest =
      1 << 24;  // sixteen times the longest context of a shipped model; tokens are played one by one
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text == "k" || text == "K") x *= 1024, text = {};
  return error == std::errc{} && text.empty() && x >= 1 && x <= longest ? std::optional(x) : std::nullopt;
}

}  // namespace

std::optional<token_lengths> lengths_in(const csv_row& row, std::string_view column) {
  std::string cell = row[column];
  std::erase(cell, ' ');
  if (cell.empty()) return std::nullopt;
  std::string_view text = cell;
  if (text.starts_with('~')) text.remove_prefix(1);
  std::optional<double> first = length_in(text), last = first;
  for (const std::string_view between : {"-", "..", "\u2013", "to"})
    if (const std::size_t at = text.find(between); !first && at != std::string_view::npos) {
      first = length_in(text.substr(0, at));
      last = length_in(text.substr(at + between.size()));
      break;
    }
  if (!first || !last || *first > *last || !(*last > 0))
    throw cell_error(
        fmt::format("{}: \"{}\" is neither a number of tokens (1 to 16777216) nor a range", column, row[column]));
  const double mean = (*first + *last) / 2;
  return token_lengths{mean, (*last - mean) / mean};
}

std::optional<std::int64_t> leading(std::string_view text) {
  std::int64_t x = 0;
  std::size_t i = 0;
  for (; i < text.size() && i < 12 && text[i] >= '0' && text[i] <= '9'; ++i) x = 10 * x + (text[i] - '0');
  if (i == 0 || (i < text.size() && text[i] != ' ')) return std::nullopt;
  return x;
}

std::optional<std::int64_t> graphs_in(std::string_view cell) {
  if (cell == "no") return 0;
  constexpr std::string_view max = "<=";
  const std::size_t at = cell.find(max);
  if (at == std::string_view::npos) return std::nullopt;
  cell.remove_prefix(at + max.size());
  return leading(cell.substr(0, cell.find('+')));
}

}  // namespace nvlsim
