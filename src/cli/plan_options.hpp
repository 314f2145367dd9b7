// The options of nvlsim plan, and those of which scenarios are made.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "cli/arguments.hpp"

namespace nvlsim::cli {

/// Adds the command and calls `chosen` when one of its questions is selected.
void add_plan(CLI::App& app, plan_arguments& a, const std::function<void()>& chosen);

/// Adds the options of which a scenario is made.
void add_draft(CLI::App* c, draft_texts& into);
/// Adds `new` below `scenario`.
void add_new(CLI::App* scenario, new_arguments& a, std::function<void()> chosen);

}  // namespace nvlsim::cli
