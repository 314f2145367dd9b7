// Reading degraded hardware of a scenario.
#pragma once

#include <vector>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/layout/layout.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Reads the array `"degraded"`. Empty if there is none.
std::vector<degradation> read_degraded(config::reader& r, const platform& p);
/// Reads as this list; failed switch trays are a share of NVLink.
value write_degraded(const std::vector<degradation>& list);

}  // namespace nvlsim
