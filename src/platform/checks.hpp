// Consistency of the fields of a platform.
#pragma once

#include "nvlsim/config/document.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Adds contradictions in `p`, which was read from `doc`, to `problems`. Skips fields with problems in `reading`,
/// which hold placeholders.
void check_platform(const platform& p, const config::document& doc, const diagnostics& reading,
                    diagnostics& problems);

}  // namespace nvlsim
