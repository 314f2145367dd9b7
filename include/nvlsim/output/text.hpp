// Text layout for terminals, and escaping.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nvlsim::output {

/// Returns well-formed UTF-8. Replaces every byte outside a valid sequence with U+FFFD.
std::string valid_utf8(std::string_view text);

/// Appends `text` as a quoted JSON string. Escapes control characters and replaces invalid UTF-8.
void append_json_string(std::string& out, std::string_view text);

/// Escapes text for XML 1.0 content and attribute values. Replaces characters that XML does not allow.
std::string xml_escaped(std::string_view text);

/// A field as in RFC 4180. Quoted if it contains a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

/// A word for a POSIX shell: as it is, or in single quotes.
std::string shell_word(std::string_view word);

/// Number of characters, which is the terminal width of text without wide or combining characters. Requires valid
/// UTF-8.
std::size_t width(std::string_view text);

/// Pads with blanks to `columns`. Does not cut longer text.
std::string padded_left(std::string_view text, std::size_t columns);
std::string padded_right(std::string_view text, std::size_t columns);

/// Makes one line: control characters become blanks, and ".." replaces the middle of text longer than `columns`.
std::string one_line(std::string_view text, std::size_t columns);

/// Wraps `text` at words into lines of at most `columns`. A longer word gets its own line.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

/// Terminal width for tables.
inline constexpr std::size_t table_columns = 80;

/// Lays out cells in columns two blanks apart, the first left-aligned, the others right-aligned. Rows may differ
/// in length. No line ends in a blank. A table wider than `table_columns` has the middle of its first column cut,
/// to `least` columns or more; if that is not enough, it continues in a table below that repeats the first column.
std::string grid(const std::vector<std::vector<std::string>>& rows, std::size_t indent, std::size_t least = 20);

}  // namespace nvlsim::output
