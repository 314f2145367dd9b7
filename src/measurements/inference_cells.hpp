// What cells of inference.csv hold that are not plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// A cell with a number ("8192", "8k"), about a number ("~273") or a range, in which lengths are uniform
/// ("128-2048"); nothing when it is blank. Throws cell_error.
std::optional<token_lengths> lengths_in(const csv_row& row, std::string_view column);

/// The leading whole number of a launch setting; nothing when it begins otherwise.
std::optional<std::int64_t> leading(std::string_view text);

/// Most decodes that a CUDA graph is made for: "no" (0), "padded<=512+piecewise", "<=64"; nothing where none is
/// said.
std::optional<std::int64_t> graphs_in(std::string_view cell);

}  // namespace nvlsim
