// Text of comma-separated values as records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nvlsim::config {

/// Splits RFC 4180 text into records; quotes double inside quotes, and lines may end in CR LF. Throws input_error
/// of `file` where a quote is not closed.
std::vector<std::vector<std::string>> csv_records(std::string_view text, const std::string& file);

}  // namespace nvlsim::config
