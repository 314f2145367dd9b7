// Words in the text of cells.
#pragma once

#include <optional>
#include <string_view>

namespace nvlsim {

/// Whether a word occurs in a text.
inline bool holds(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}
/// The number that follows a word, with a suffix "k" for thousands. Empty if there is none.
std::optional<double> number_after(std::string_view text, std::string_view word);

}  // namespace nvlsim
