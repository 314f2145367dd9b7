// Readable messages for JSON syntax errors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nvlsim::config {

/// The message for a syntax error in `text`: "line 3, column 5: expected a value, found }". `byte` is the
/// one-based position of the last byte that the JSON library read, `token` the token that it read, `said` its
/// message.
std::string syntax_message(std::string_view text, std::size_t byte, std::string_view token, std::string_view said);

}  // namespace nvlsim::config
