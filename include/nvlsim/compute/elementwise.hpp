// What memory-bound kernels move, by name, for those that put them in order.
// [docs/kernels.md#memory-bound-kernels]
#pragma once

#include <string_view>

namespace nvlsim::compute {

/// Bytes an element of the kernel `name` of `elementwise_kernels()`, which must be one of them.
double elementwise_bytes(std::string_view name);

}  // namespace nvlsim::compute
