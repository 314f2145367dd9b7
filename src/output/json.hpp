// Result files read back; the public functions are in nvlsim/output/output.hpp.
#pragma once

#include "nvlsim/config/document.hpp"
#include "nvlsim/output/output.hpp"

namespace nvlsim::output {

/// One result from a parsed document, strict about names and types. After a problem the result is incomplete.
result result_from(config::document doc, diagnostics& problems);

}  // namespace nvlsim::output
