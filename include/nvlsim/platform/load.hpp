// Platform files.
#pragma once

#include <string>

#include "nvlsim/config/document.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Reads a platform document (schema "nvlsim.platform/1") and adds all problems to `problems`. If there are any,
/// the platform must not be used. The provenance of every number is added to `doc.sources`.
platform read_platform(config::document& doc, std::string name, diagnostics& problems);

/// The members of a platform as its file would say them: reading them gives the platform back, but for its name,
/// description, racks and note on the price. What reading derived stands as it is: `gpu.nvlink` with failed switch
/// trays, `gpu.power_cap` under a cap of the rack.
value write_platform(const platform& p);

}  // namespace nvlsim
