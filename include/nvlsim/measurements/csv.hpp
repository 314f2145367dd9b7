// Reads tables of published measurements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace nvlsim {

/// One data row: column name -> cell. A missing column reads as blank.
class csv_row {
 public:
  csv_row(std::shared_ptr<const std::map<std::string, std::size_t, std::less<>>> columns,
          std::vector<std::string> cells)
      : columns_(std::move(columns)), cells_(std::move(cells)) {}
  const std::string& operator[](std::string_view column) const;
  bool blank(std::string_view column) const { return (*this)[column].empty(); }
  /// The cell as a number. Empty if the cell is blank. Throws cell_error if it is not a number, or beyond 1e-30 to
  /// 1e30.
  std::optional<double> number(std::string_view column) const;
  /// A whole number that fits 32 bits, and counts of GPUs and requests 20.
  std::optional<std::int64_t> integer(std::string_view column) const;

 private:
  std::shared_ptr<const std::map<std::string, std::size_t, std::less<>>> columns_;
  std::vector<std::string> cells_;
};

struct csv_table {
  std::string stem;  ///< file name without folder or extension
  std::vector<std::string> columns;
  std::vector<csv_row> rows;
  bool has(std::string_view column) const;
};

/// Thrown when a cell is not a valid value of its column.
class cell_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A measured value. Empty if the cell is blank. Throws cell_error if it is not positive.
std::optional<double> published_value(const csv_row& row, std::string_view column);

/// Reads RFC 4180 text with a header line. Throws io_error if the file cannot be read, and input_error for an
/// unterminated quote, a row with the wrong number of cells, a missing header, or a header without rows.
csv_table read_csv(const std::filesystem::path& file);

/// Reads a required positive number. Throws cell_error if it is missing or not positive.
double need(const csv_row& row, std::string_view column);
/// Reads a required positive whole number of a column.
int need_count(const csv_row& row, std::string_view column);

}  // namespace nvlsim
