// Stack values that a scenario depends on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// The GPU's entry in "kernels", then the entries that it inherits from.
std::vector<std::string> kernel_entries(const value& kernels, const gpu_spec& gpu);

/// Values of a resolved stack that apply to platform `p`, without their sources. Of the sections `training` and
/// `inference` keeps only `section`. Of tables by GPU, NVLink generation or fabric keeps only the entries of `p`
/// and those that they inherit from.
value stack_values(const value& resolved, const platform& p, std::string_view section);

}  // namespace nvlsim
