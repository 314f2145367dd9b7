// Reading ranges of GPU and rack numbers.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/layout/layout.hpp"

namespace nvlsim {

/// Reads a number, or text such as "0-127" or "3,5,8-9". All numbers must be below `count`. Empty if absent.
/// `what` is the noun for problems.
std::vector<degradation::range> read_ranges(config::reader& r, const char* key, std::int64_t count,
                                            const char* what);

}  // namespace nvlsim
