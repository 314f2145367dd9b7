// Numbers and dates that are all of a text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace nvlsim::config {

/// The number that `text` is, from its first to its last character.
template <class T>
std::optional<T> whole_text(std::string_view text) {
  T x{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return x;
}

/// Takes "+01:30" or "Z" from the end of a time, and returns the seconds that it is ahead of UTC. Empty: no such
/// end. Nothing is taken from what cannot be read.
std::optional<double> take_offset(std::string_view& t);

/// "2023-11-16 18:17:03.9799600" as seconds since 1970, UTC.
std::optional<double> date_and_time(std::string_view t);

}  // namespace nvlsim::config
