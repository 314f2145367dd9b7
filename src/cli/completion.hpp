// Shell completion. The scripts call the program for candidates.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <string_view>

namespace nvlsim::cli {

/// The scripts call `nvlsim __complete WORD...`. The last word is the one being typed.
inline constexpr std::string_view complete_word = "__complete";

/// The script for "bash", "zsh" or "fish".
std::string_view completion_script(std::string_view shell);

/// Candidates for the last word, one per line, optionally followed by a tab and a description. If a path is also
/// valid, a last line ":files" or ":dirs".
std::string complete(const CLI::App& app, std::span<const std::string> words);

}  // namespace nvlsim::cli
