#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "cli/arguments.hpp"

namespace nvlsim::cli {

/// Adds `kernel` with its classes; `chosen` is called when one was asked for.
void add_kernel(CLI::App& app, kernel_arguments& a, std::function<void()> chosen);

}  // namespace nvlsim::cli
