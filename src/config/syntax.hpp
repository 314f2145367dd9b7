// JSON syntax errors in words that teach.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nvlsim::config {

/// "line 3, column 5: expected a value, found }": where and what is wrong with `text`. `byte` is the one-based
/// place of the last byte that the JSON library read, `token` and `said` what it read and reported.
std::string syntax_message(std::string_view text, std::size_t byte, std::string_view token, std::string_view said);

}  // namespace nvlsim::config
