// Platform files.
#pragma once

#include <string>

#include "nvlsim/config/document.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Reads a platform document (schema "nvlsim.platform/1") and adds all problems to `problems`. If there are any,
/// the platform must not be used. The provenance of every number is added to `doc.sources`.
platform read_platform(config::document& doc, std::string name, diagnostics& problems);

}  // namespace nvlsim
