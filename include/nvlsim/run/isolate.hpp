// Runs each scenario in its own process. A crash costs one scenario, memory is returned, and in `flow` no digit
// depends on what ran before.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Runs a scenario in a child process. The child writes the trace and the requests if files are named. Rethrows
/// exceptions of the child as input_error, io_error or internal_error.
result run_isolated(const scenario& s, const std::filesystem::path& trace_file = {},
                    const trace_options& trace = {}, const std::filesystem::path& requests_file = {},
                    const std::filesystem::path& jobs_file = {});

}  // namespace nvlsim
