// Independent pieces of work on all processors.
#pragma once

#include <cstddef>
#include <functional>

namespace nvlsim {

/// Calls with 0 to `count` - 1, as many at a time as there are processors. Throws what the first of them threw,
/// once all are done.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& each);

}  // namespace nvlsim
