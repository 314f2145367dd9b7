// What a scenario says is not as the platform has it.
#pragma once

#include <vector>

#include "config/reader.hpp"
#include "nvlsim/layout.hpp"
#include "nvlsim/platform.hpp"

namespace nvlsim {

/// Reads the array `"degraded"`; empty when there is none.
std::vector<degradation> read_degraded(config::reader& r, const platform& p);

}  // namespace nvlsim
