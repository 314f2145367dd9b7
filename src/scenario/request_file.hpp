// Request files: arrival times, lengths and shared prefixes. [docs/serving.md#traces]
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

/// What a load says of its file, in place of what the file's format says.
struct request_file_options {
  std::optional<double> seconds_per_unit;    ///< of times
  std::optional<std::int64_t> block_tokens;  ///< tokens of a block of a prompt
};

/// Reads a CSV or JSONL file. Its columns determine the format. Reports up to twenty lines that cannot be read or
/// contradict the format. Times are relative to the first request and sorted. Throws io_error when the file cannot
/// be read.
request_trace read_request_file(const std::filesystem::path& file, const std::string& shown_as,
                                const request_file_options& options, diagnostics& problems);

}  // namespace nvlsim
