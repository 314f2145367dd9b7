#include "measurements/cell_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace nvlsim {

std::optional<double> number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + word.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  double n = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (status != std::errc()) return std::nullopt;
  return end != text.data() + text.size() && *end == 'k' ? n * 1000 : n;
}

}  // namespace nvlsim
