// Runs independent calls on all processors.
#pragma once

#include <cstddef>
#include <functional>

namespace nvlsim {

/// Processors that this process may use, at least 1.
std::size_t processors();

/// Calls `each` with 0 to `count` - 1, in parallel on all processors. When all calls are done, rethrows the first
/// exception.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& each);

}  // namespace nvlsim
