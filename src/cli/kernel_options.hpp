#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string_view>

#include "cli/arguments.hpp"

namespace nvlsim::cli {

/// The stack whose kernels count where none is asked for.
std::string_view default_stack(std::string_view kernel);

/// Adds `kernel` with its classes; `chosen` is called when one was asked for.
void add_kernel(CLI::App& app, kernel_arguments& a, std::function<void()> chosen);

}  // namespace nvlsim::cli
