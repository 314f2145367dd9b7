#include "nvlsim/diagnostics/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace nvlsim {
namespace {

std::string join(const std::vector<problem>& problems) {
  std::string text;
  for (const problem& p : problems) {
    if (!text.empty()) text += '\n';
    text += p.text();
  }
  return text;
}

/// Edit distance, in which an insertion, deletion, substitution or swap of neighbouring letters costs one.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Compares text with the numbers in it by value: "line 3" is less than "line 10". Less, equal or greater than 0.
int compared(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const auto take = [](std::string_view& t) {
      std::size_t n = 0;
      while (n < t.size() && is_digit(t[n])) ++n;
      const std::string_view out = t.substr(0, std::max<std::size_t>(n, 1));
      t.remove_prefix(out.size());
      return out;
    };
    const std::string_view x = take(a), y = take(b);
    if (is_digit(x.front()) && is_digit(y.front()) && x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    if (const int c = x.compare(y); c != 0) return c;
  }
  return static_cast<int>(!a.empty()) - static_cast<int>(!b.empty());
}

/// Only for ASCII, and therefore independent of the locale.
std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

std::string problem::text() const {
  std::string out = file.empty() && pointer.empty() ? what : fmt::format("{}#{}: {}", file, pointer, what);
  if (!hint.empty()) out.append(fmt::format("; did you mean \"{}\"?", hint));
  // Names and values come from files. They must not add lines to the message or control the terminal.
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return out;
}

void diagnostics::add(problem p) { problems_.push_back(std::move(p)); }

void diagnostics::add(std::string file, std::string pointer, std::string what, std::string hint) {
  add({std::move(file), std::move(pointer), std::move(what), std::move(hint)});
}

std::vector<problem> diagnostics::sorted() const {
  std::vector<problem> out = problems_;
  const auto order = [](const problem& p) { return std::tie(p.file, p.pointer, p.what, p.hint); };
  std::sort(out.begin(), out.end(), [&](const problem& a, const problem& b) {
    for (std::string problem::*part : {&problem::file, &problem::pointer, &problem::what})
      if (const int c = compared(a.*part, b.*part); c != 0) return c < 0;
    return order(a) < order(b);
  });
  out.erase(std::unique(out.begin(), out.end(),
                        [&](const problem& a, const problem& b) { return order(a) == order(b); }),
            out.end());
  return out;
}

void diagnostics::throw_if_any() const {
  if (!problems_.empty()) throw input_error(sorted());
}

input_error::input_error(std::vector<problem> problems)
    : std::runtime_error(join(problems)), problems_(std::move(problems)) {}

exit_code input_error::code() const {
  const bool unreadable =
      std::any_of(problems_.begin(), problems_.end(), [](const problem& p) { return p.unreadable; });
  return unreadable ? exit_code::io : exit_code::bad_input;
}

namespace {

/// How far the numbers in two texts lie apart: "1.3" and "1.2" by 1. Texts with other counts of numbers are far.
std::size_t number_distance(std::string_view a, std::string_view b) {
  const auto numbers_of = [](std::string_view text) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!is_digit(text[i])) continue;
      if (i == 0 || !is_digit(text[i - 1])) out.push_back(0);
      out.back() = std::min<std::size_t>(out.back() * 10 + static_cast<std::size_t>(text[i] - '0'), 1'000'000);
    }
    return out;
  };
  const std::vector<std::size_t> x = numbers_of(a), y = numbers_of(b);
  if (x.size() != y.size()) return std::numeric_limits<std::size_t>::max();
  std::size_t out = 0;
  for (std::size_t i = 0; i < x.size(); ++i) out += std::max(x[i], y[i]) - std::min(x[i], y[i]);
  return out;
}

/// How far a candidate is from a name; the least is the nearest.
struct name_distance {
  bool lacks = true;  ///< the candidate does not end in the whole name, as "nvfp4" does in "fp4"
  std::size_t edits = 0;
  bool broken = false;  ///< neither has all the letters of the other
  std::size_t numbers = 0;
  friend auto operator<=>(const name_distance&, const name_distance&) = default;
};

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t telling =
      3;  // letters from which a name at the end of another says more than a typing error
  const std::string wanted = lower_case(name);
  const std::size_t limit =
      std::max<std::size_t>(1, name.size() / 3) + 1;  // a typing error changes at most a third of the letters
  std::string best;
  std::optional<name_distance> least;
  for (const std::string& c : candidates) {
    const std::size_t longer = std::max(name.size(), c.size()), apart = longer - std::min(name.size(), c.size());
    if (apart > limit) continue;  // the distance is at least this
    const std::string there = lower_case(c);
    const std::size_t d = edit_distance(wanted, there);
    const bool whole = d == apart;
    const bool holds = wanted.size() >= telling && there.ends_with(wanted);
    if (d >= longer || d > limit || (d == limit && !holds)) continue;
    const name_distance now{!holds, d, !whole, number_distance(wanted, there)};
    if (least && !(now < *least)) continue;
    least = now;
    best = c;
  }
  return best;
}

}  // namespace nvlsim
