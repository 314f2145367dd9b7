#include "scenario/ranges_reader.hpp"

#include <fmt/format.h>

#include <charconv>

namespace nvlsim {
namespace {

/// Parses "17", "0-127" or "3,5,8-9". Empty on a syntax error.
std::optional<std::vector<degradation::range>> parse_ranges(std::string_view text) {
  std::vector<degradation::range> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::int64_t& n) {
    const auto [stop, status] = std::from_chars(at, end, n);
    at = stop;
    return status == std::errc() && n >= 0;
  };
  for (;;) {
    degradation::range r;
    if (!number(r.first)) return std::nullopt;
    r.last = r.first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(r.last) || r.last < r.first) return std::nullopt;
    }
    out.push_back(r);
    if (at == end) return out;
    if (*at++ != ',') return std::nullopt;
  }
}

}  // namespace

std::vector<degradation::range> read_ranges(config::reader& r, const char* key, std::int64_t count,
                                            const char* what) {
  const value* v = r.raw(key);
  if (!v) return {};
  const std::string text = v->integer()  ? std::to_string(*v->integer())
                           : v->string() ? *v->string()
                                         : std::string();
  const auto ranges = parse_ranges(text);
  if (!ranges) {
    r.fail(key, "expected a number, or text such as \"0-127\" or \"3,5,8-9\"");
    return {};
  }
  for (const degradation::range& x : *ranges)
    if (x.last >= count)
      r.fail(key, fmt::format("{} {} does not exist; the platform has {}", what, x.last, count));
  return *ranges;
}

}  // namespace nvlsim
