// Request files: arrival times, lengths and shared prefixes. [docs/serving.md#traces]
#pragma once

#include <filesystem>
#include <string>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

/// Reads a CSV or JSONL file. Its columns determine the format. Reports up to twenty unreadable lines. Times are
/// relative to the first request and sorted. Throws io_error when the file cannot be read.
request_trace read_request_file(const std::filesystem::path& file, const std::string& shown_as,
                                diagnostics& problems);

}  // namespace nvlsim
