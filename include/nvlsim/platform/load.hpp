// Platform files.
#pragma once

#include <string>

#include "nvlsim/config/document.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Reads a platform document (schema "nvlsim.platform/1"), adding everything wrong with it to `problems`; the
/// platform must not be used if there was anything. Provenance of every number goes into `doc.sources`.
platform read_platform(config::document& doc, std::string name, diagnostics& problems);

}  // namespace nvlsim
