#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string_view>

#include "cli/arguments.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::cli {

/// The default stack for a kernel class.
std::string_view default_stack(std::string_view kernel);

/// Adds the command `kernel` with its classes. Calls `chosen` when one is selected.
void add_kernel(CLI::App& app, kernel_arguments& a, std::function<void()> chosen);

/// Reports invalid kernel shapes as problems of the responsible options.
void check_shape(const kernel_arguments& a, diagnostics& problems);

}  // namespace nvlsim::cli
