#include "nvlsim/output/text.hpp"

#include <algorithm>

namespace nvlsim::output {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

unsigned byte_at(std::string_view s, std::size_t i) {
  return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u;
}

/// Length of the valid UTF-8 sequence at `i`, or 0. [Unicode, table 3-7]
std::size_t sequence_length(std::string_view s, std::size_t i) {
  const unsigned lead = byte_at(s, i);
  if (lead < 0x80) return 1;
  const auto tail = [&](std::size_t k) { return (byte_at(s, i + k) & 0xC0u) == 0x80u; };
  const unsigned second = byte_at(s, i + 1);
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && second < 0xA0;
    const bool surrogate = lead == 0xED && second > 0x9F;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && second < 0x90;
    const bool too_large = lead == 0xF4 && second > 0x8F;
    return tail(1) && tail(2) && tail(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

/// Calls `ascii(char)` and `other(sequence)` for each character, with U+FFFD for each invalid byte.
template <class Ascii, class Other>
void for_each_character(std::string_view s, Ascii ascii, Other other) {
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t n = sequence_length(s, i);
    if (n == 1) ascii(s[i]);
    else other(n == 0 ? replacement : s.substr(i, n));
    i += std::max<std::size_t>(n, 1);
  }
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

void append_escape(std::string& out, char c) {
  static constexpr std::string_view plain = "\b\f\n\r\t\"\\", letters = "bfnrt\"\\", hex = "0123456789abcdef";
  if (const std::size_t i = plain.find(c); i != std::string_view::npos) {
    out += '\\';
    out += letters[i];
    return;
  }
  const auto code = static_cast<unsigned char>(c);
  out += "\\u00";
  out += hex[code >> 4];
  out += hex[code & 15u];
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(
      text, [&](char c) { out += c; }, [&](std::string_view s) { out += s; });
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for_each_character(
      text,
      [&](char c) {
        if (is_control(c) || c == '"' || c == '\\') append_escape(out, c);
        else out += c;
      },
      [&](std::string_view s) { out += s; });
  out += '"';
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for_each_character(
      text,
      [&](char c) {
        switch (c) {
          case '&':
            out += "&amp;";
            break;
          case '<':
            out += "&lt;";
            break;
          case '>':
            out += "&gt;";
            break;
          case '"':
            out += "&quot;";
            break;
          case '\n':
            out += "&#10;";
            break;
          case '\r':
            out += "&#13;";
            break;
          case '\t':
            out += "&#9;";
            break;
          default:
            if (is_control(c) && c != 0x7F) out += replacement;
            else out += c;
        }
      },
      // U+FFFE and U+FFFF are valid in UTF-8 but not in XML.
      [&](std::string_view s) { out += s == "\xEF\xBF\xBE" || s == "\xEF\xBF\xBF" ? replacement : s; });
  return out;
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:+-@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

std::string padded_left(std::string_view text, std::size_t columns) {
  const std::size_t w = width(text);
  return std::string(w < columns ? columns - w : 0, ' ') + std::string(text);
}

std::string padded_right(std::string_view text, std::size_t columns) {
  const std::size_t w = width(text);
  return std::string(text) + std::string(w < columns ? columns - w : 0, ' ');
}

std::string one_line(std::string_view text, std::size_t columns) {
  std::vector<std::string> characters;
  for_each_character(
      text, [&](char c) { characters.emplace_back(1, is_control(c) ? ' ' : c); },
      [&](std::string_view s) { characters.emplace_back(s); });
  std::string out;
  const bool cut = characters.size() > columns && columns > 2;
  const std::size_t head = cut ? (columns - 1) / 2 : characters.size();
  const std::size_t tail = cut ? columns - 2 - head : 0;
  for (std::size_t i = 0; i < head; ++i) out += characters[i];
  if (cut) out += "..";
  for (std::size_t i = characters.size() - tail; i < characters.size(); ++i) out += characters[i];
  return out;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  const std::string clean = one_line(text, std::string::npos);
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t i = 0; i < clean.size();) {
    const std::size_t begin = clean.find_first_not_of(' ', i);
    if (begin == std::string::npos) break;
    const std::size_t end = std::min(clean.find(' ', begin), clean.size());
    const std::string word = clean.substr(begin, end - begin);
    if (!line.empty() && width(line) + 1 + width(word) > columns) {
      lines.push_back(std::move(line));
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    i = end;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

namespace {

constexpr std::size_t gap = 2;

/// A table's columns `first` to `last`, beside its column 0 cut to `room`.
struct block_shape {
  std::size_t indent = 0, room = 0, first = 0, last = 0;
};
std::string column_block(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& widths,
                         const block_shape& b) {
  std::string out;
  for (const auto& row : rows) {
    std::string line(b.indent, ' ');
    if (!row.empty()) line += row.size() == 1 ? row[0] : padded_right(one_line(row[0], b.room), b.room);
    for (std::size_t i = b.first; i < std::min(b.last, row.size()); ++i)
      line += std::string(gap, ' ') + padded_left(row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace

std::string grid(const std::vector<std::vector<std::string>>& rows, std::size_t indent, std::size_t least) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  if (widths.empty()) return std::string(rows.size(), '\n');
  const std::size_t room = table_columns - std::min(indent, table_columns);
  std::size_t others = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) others += gap + widths[i];
  const std::size_t shortest = std::min(widths[0], least);
  const std::size_t first = std::clamp(room > others ? room - others : 0, shortest, widths[0]);
  std::string out;
  std::size_t begin = 1;
  do {
    std::size_t end = begin, used = first;
    while (end < widths.size() && (end == begin || used + gap + widths[end] <= room)) used += gap + widths[end++];
    if (begin > 1) out += '\n';
    out += column_block(rows, widths, {indent, first, begin, end});
    begin = end;
  } while (begin < widths.size());
  return out;
}

}  // namespace nvlsim::output
