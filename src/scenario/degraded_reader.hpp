// What a scenario says is not as the platform has it.
#pragma once

#include <vector>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/layout/layout.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Reads the array `"degraded"`; empty when there is none.
std::vector<degradation> read_degraded(config::reader& r, const platform& p);

}  // namespace nvlsim
