// Parses result files. The public functions are in nvlsim/output/output.hpp.
#pragma once

#include "nvlsim/config/document.hpp"
#include "nvlsim/output/output.hpp"

namespace nvlsim::output {

/// Converts a parsed document into a result. Strict about names and types. The result is incomplete if problems
/// were reported.
result result_from(config::document doc, diagnostics& problems);

}  // namespace nvlsim::output
