// Shell completion: small scripts that ask the program itself.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <string_view>

namespace nvlsim::cli {

/// The word by which the scripts ask: `nvlsim __complete WORD...`, the last word being the one that is typed.
inline constexpr std::string_view complete_word = "__complete";

/// The script for "bash", "zsh" or "fish".
std::string_view completion_script(std::string_view shell);

/// What may stand for the last word: lines of a candidate, or a candidate, a tab and what it is; then, where a
/// path may stand too, a line ":files" or ":dirs".
std::string complete(const CLI::App& app, std::span<const std::string> words);

}  // namespace nvlsim::cli
