// Text of comma-separated values as records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nvlsim::config {

/// Splits RFC 4180 text into records. Quotes inside quotes are doubled, and lines may end in CR LF. Throws
/// input_error that names `file` if a quote is not closed.
std::vector<std::vector<std::string>> csv_records(std::string_view text, const std::string& file);

}  // namespace nvlsim::config
