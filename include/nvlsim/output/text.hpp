// Text for terminals and for other formats' escapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nvlsim::output {

/// Well-formed UTF-8: every byte that is part of no valid sequence is replaced with U+FFFD.
std::string valid_utf8(std::string_view text);

/// Appends `text` as a JSON string with its quotes: control characters escaped, invalid UTF-8 replaced.
void append_json_string(std::string& out, std::string_view text);

/// For XML 1.0 text and attribute values; characters XML cannot hold are replaced.
std::string xml_escaped(std::string_view text);

/// A field of RFC 4180: quoted when it holds a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

/// Characters, as a terminal counts them for text without wide or combining characters. Requires valid UTF-8.
std::size_t width(std::string_view text);

/// Padded with blanks to `columns`; longer text stays whole.
std::string padded_left(std::string_view text, std::size_t columns);
std::string padded_right(std::string_view text, std::size_t columns);

/// One line: control characters become blanks, and what is longer than `columns` loses its middle to "..".
std::string one_line(std::string_view text, std::size_t columns);

/// Words of `text` in lines of at most `columns`; a longer word has a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

/// Columns of a terminal that tables fit in.
inline constexpr std::size_t table_columns = 80;

/// Rows of cells in columns two blanks apart: the first is left-aligned, the others right-aligned, rows may differ
/// in length. No line ends in a blank. What is wider than `table_columns` loses the middle of its first column,
/// and where that is not enough goes on in a second table below, with the first column again.
std::string grid(const std::vector<std::vector<std::string>>& rows, std::size_t indent);

}  // namespace nvlsim::output
