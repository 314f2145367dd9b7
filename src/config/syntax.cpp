#include "config/syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "nvlsim/units/units_text.hpp"

namespace nvlsim::config {
namespace {

constexpr auto npos = std::string_view::npos;

struct token_wording {
  std::string_view theirs;
  std::string_view ours;
};

/// What nlohmann/json expected, in the words of JSON.
constexpr std::array expectations = {
    token_wording{"string literal", "a name in double quotes"},
    token_wording{"'}'", "\",\" or \"}\""},
    token_wording{"']'", "\",\" or \"]\""},
    token_wording{"':'", "\":\" after the name"},
    token_wording{"'[', '{', or a literal", "a value"},
};

/// Errors inside a string or a number.
constexpr std::array lexical = {
    token_wording{"missing closing quote", "a string has no closing quote"},
    token_wording{"(LF)", "a string holds a line break; write \\n"},
    token_wording{"(HT)", "a string holds a tab; write \\t"},
    token_wording{"control character", "a string holds a control character; write it as \\u and four hex digits"},
    token_wording{"forbidden character after backslash", "a backslash stands before \" \\ / b f n r t u only"},
    token_wording{"hex digits", "\\u needs four hex digits"},
    token_wording{"surrogate", "\\u names half of a surrogate pair"},
    token_wording{"UTF-8", "the text is not UTF-8"},
    token_wording{"BOM", "the text is not UTF-8"},
    token_wording{"invalid number", "a digit is missing in a number"},
    token_wording{"number overflow", "a number is out of range"},
};

std::string_view between(std::string_view text, std::string_view from, std::string_view to) {
  const std::size_t begin = text.find(from);
  if (begin == npos) return {};
  text.remove_prefix(begin + from.size());
  return text.substr(0, text.find(to));
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
         c == '+' || c == '.';
}

/// The word or the single character at `at`.
std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, std::max<std::size_t>(end - at, 1));
}

/// Advice about a word that is not JSON.
std::string_view advice(std::string_view text, std::size_t at, std::string_view word, bool name_expected) {
  if (word == "'") return "; strings take double quotes";
  if (word == "#" || text.substr(at, 2) == "//" || text.substr(at, 2) == "/*") return "; JSON has no comments";
  if (name_expected) return "";
  std::string lower(word);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (lower == "true" || lower == "false") return "; true and false take lower case";
  if (lower == "null" || lower == "none") return "; an absent value is written null";
  if (lower.find("nan") != npos || lower.find("inf") != npos) return "; JSON has no NaN and no infinity";
  if (word.front() == '+' || word.front() == '.') return "; a number begins with a digit or \"-\"";
  return is_word(word.front()) ? "; strings take double quotes" : "";
}

/// The zero-based position of the problem, and its description.
std::pair<std::size_t, std::string> describe(std::string_view text, std::size_t byte, std::string_view token,
                                             std::string_view said) {
  const std::size_t last = std::min(byte == 0 ? 0 : byte - 1, text.size());
  std::string_view expected = between(said, "; expected ", "\n");
  for (const token_wording& w : expectations)
    if (w.theirs == expected) expected = w.ours;
  if (expected.empty()) expected = "a value";
  const bool at_end = expected == "end of input";

  if (text.find_first_not_of(" \t\r\n") == npos) return {last, "the text is empty"};
  if (said.find("unexpected end of input") != npos)
    return {text.size(), fmt::format("the text ends too early; expected {}", expected)};
  if (said.find("invalid literal") != npos) {
    std::size_t at = last;
    while (at > 0 && is_word(text[at - 1])) --at;
    const std::string_view word = word_at(text, at);
    if (at_end) return {at, fmt::format("unexpected {} after the end of the document", in_quotes(word))};
    const bool name_expected = said.find("object key") != npos;
    return {at, fmt::format("expected {}, found {}{}", expected, in_quotes(word),
                            advice(text, at, word, name_expected))};
  }
  for (const token_wording& w : lexical)
    if (said.find(w.theirs) != npos) {
      const bool whole = w.theirs == "missing closing quote" || w.theirs == "number overflow";
      return {whole && token.size() <= byte ? last + (last < text.size()) - token.size() : last,
              std::string(w.ours)};
    }

  const std::string_view kind = between(said, "unexpected ", ";");
  const bool literal = kind.ends_with("string literal") || kind.ends_with("number literal");
  const std::size_t at = literal && token.size() <= byte ? byte - token.size() : last;
  std::string found =
      literal ? in_quotes(token.starts_with('"') && token.size() > 1 ? token.substr(1, token.size() - 2) : token)
              : in_quotes(word_at(text, at));
  if (at_end) return {at, fmt::format("unexpected {} after the end of the document", found)};
  if (kind == "number literal" && at > 0 && text[at - 1] == '0') return {at - 1, "a number must not begin with 0"};
  std::string sentence = fmt::format("expected {}, found {}", expected, found);
  const std::size_t before = at == 0 ? npos : text.find_last_not_of(" \t\r\n", at - 1);
  const bool closes = text.substr(at, 1) == "}" || text.substr(at, 1) == "]";
  if (closes && before != npos && text[before] == ',') sentence += "; remove the comma before it";
  return {at, std::move(sentence)};
}

}  // namespace

std::string syntax_message(std::string_view text, std::size_t byte, std::string_view token,
                           std::string_view said) {
  const auto [at, sentence] = describe(text, byte, token, said);
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == npos ? at + 1 : at - newline;
  return fmt::format("line {}, column {}: {}", line, column, sentence);
}

}  // namespace nvlsim::config
