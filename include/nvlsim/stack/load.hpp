// Reading stack files.
#pragma once

#include "nvlsim/config/document.hpp"
#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

/// Reads a stack document (schema "nvlsim.stack/1"). Adds everything wrong with it to `problems`.
stack read_stack(config::document& doc, std::string name, diagnostics& problems);

}  // namespace nvlsim
