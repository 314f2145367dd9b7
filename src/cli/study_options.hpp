#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "cli/arguments.hpp"

namespace nvlsim::cli {

/// Add the commands; `chosen` is called when one was asked for.
void add_search(CLI::App& app, search_arguments& a, std::function<void()> chosen);
void add_sweep(CLI::App& app, sweep_arguments& a, const std::function<void()>& chosen);

}  // namespace nvlsim::cli
