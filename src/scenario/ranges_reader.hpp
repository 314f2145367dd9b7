// GPUs and racks by their numbers on the platform.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/layout/layout.hpp"

namespace nvlsim {

/// A number, or text such as "0-127" or "3,5,8-9", below `count`; nothing when absent. `what` names one in
/// problems.
std::vector<degradation::range> read_ranges(config::reader& r, const char* key, std::int64_t count,
                                            const char* what);

}  // namespace nvlsim
