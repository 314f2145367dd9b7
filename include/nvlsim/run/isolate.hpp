// One process a scenario: the engine's clock and tables are global, so results would depend on the order of
// running.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Runs a scenario in a child process; writes its trace and its requests there when files are named. Exceptions of
/// the child come back as input_error, io_error or internal_error.
result run_isolated(const scenario& s, const std::filesystem::path& trace_file = {},
                    const trace_options& trace = {}, const std::filesystem::path& requests_file = {});

}  // namespace nvlsim
