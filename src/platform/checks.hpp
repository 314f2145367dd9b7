// What must hold between the fields of a platform.
#pragma once

#include "nvlsim/config/document.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Adds the contradictions of `p`, read from `doc`, to `problems`. A field that `reading` already complains
/// about holds a stand-in, so that nothing is said about it twice.
void check_platform(const platform& p, const config::document& doc, const diagnostics& reading,
                    diagnostics& problems);

}  // namespace nvlsim
