#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string_view>

#include "cli/arguments.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::cli {

/// The stack whose kernels count where none is asked for.
std::string_view default_stack(std::string_view kernel);

/// Adds `kernel` with its classes; `chosen` is called when one was asked for.
void add_kernel(CLI::App& app, kernel_arguments& a, std::function<void()> chosen);

/// What no kernel can be: each as a problem of the option that says it.
void check_shape(const kernel_arguments& a, diagnostics& problems);

}  // namespace nvlsim::cli
