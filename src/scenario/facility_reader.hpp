// Reading the site of a cluster.
#pragma once

#include <filesystem>
#include <memory>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/facility/facility.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Reads the object `"facility"`; null if there is none. `sites` is the folder of the table of regions and
/// coolants.
std::shared_ptr<const facility_spec> read_facility(config::reader& r, const platform& p,
                                                   const std::filesystem::path& sites, diagnostics& problems);

/// Reads as this one. Of a region, only its carbon.
value write_facility(const facility_spec& f);

}  // namespace nvlsim
