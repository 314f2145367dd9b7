// Bytes that memory-bound kernels move, by name, for modules that list the kernels of a layer.
// [docs/kernels.md#memory-bound-kernels]
#pragma once

#include <string_view>

namespace nvlsim::compute {

/// Bytes per element of the kernel `name`, which must be one of `elementwise_kernels()`.
double elementwise_bytes(std::string_view name);

}  // namespace nvlsim::compute
