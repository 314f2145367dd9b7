// Words in the text of cells.
#pragma once

#include <string_view>

namespace nvlsim {

/// Whether a word occurs in a text.
inline bool holds(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace nvlsim
