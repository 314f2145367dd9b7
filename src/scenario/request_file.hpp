// Files of requests: arrival times, lengths, and what prompts share. [docs/serving.md#traces]
#pragma once

#include <filesystem>
#include <string>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

/// Reads a CSV or JSONL file; its columns tell the format. Every unreadable line is a problem, up to twenty. Times
/// count from the first request, in order. Throws io_error when the file cannot be read.
request_trace read_request_file(const std::filesystem::path& file, const std::string& shown_as,
                                diagnostics& problems);

}  // namespace nvlsim
