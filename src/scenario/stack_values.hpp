// Stack values that a scenario depends on.
#pragma once

#include <string_view>

#include "nvlsim/config/value.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Values of a resolved stack that apply to platform `p`, without their sources. Of the sections `training` and
/// `inference` keeps only `section`. Of tables by GPU, NVLink generation or fabric keeps only the entries of `p`
/// and those that they inherit from.
value stack_values(const value& resolved, const platform& p, std::string_view section);

}  // namespace nvlsim
