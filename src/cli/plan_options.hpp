// The options of nvlsim plan.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "cli/arguments.hpp"

namespace nvlsim::cli {

/// Adds the command and calls `chosen` when one of its questions is selected.
void add_plan(CLI::App& app, plan_arguments& a, const std::function<void()>& chosen);

}  // namespace nvlsim::cli
