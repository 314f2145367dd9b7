// Parses cells of inference.csv that are not plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Parses a number ("8192", "8k"), an approximate number ("~273") or a range of uniformly distributed lengths
/// ("128-2048"). Empty if the cell is blank. Throws cell_error.
std::optional<token_lengths> lengths_in(const csv_row& row, std::string_view column);

/// The leading whole number of a launch setting. Empty if it does not start with one.
std::optional<std::int64_t> leading(std::string_view text);

/// The largest decode batch captured in a CUDA graph: "no" (0), "padded<=512+piecewise", "<=64". Empty if the cell
/// gives none.
std::optional<std::int64_t> graphs_in(std::string_view cell);

}  // namespace nvlsim
