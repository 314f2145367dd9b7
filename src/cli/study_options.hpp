#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "cli/arguments.hpp"

namespace nvlsim::cli {

/// These add the commands and call `chosen` when one is selected.
void add_search(CLI::App& app, search_arguments& a, std::function<void()> chosen);
void add_sweep(CLI::App& app, sweep_arguments& a, const std::function<void()>& chosen);

}  // namespace nvlsim::cli
