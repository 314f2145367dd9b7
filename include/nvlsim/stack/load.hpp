// Reading stack files.
#pragma once

#include "nvlsim/config/document.hpp"
#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

/// Reads a stack document (schema "nvlsim.stack/1"). Adds everything wrong with it to `problems`.
stack read_stack(config::document& doc, std::string name, diagnostics& problems);

/// The constants of a stack as its file would say them: reading them gives them back. Entries of "kernels" that
/// are like others have everything; spreads, residuals and calibrations are left out, and so are the names of what
/// stands for what.
value write_stack(const stack& s);

}  // namespace nvlsim
