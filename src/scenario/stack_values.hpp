// The part of a stack file that a scenario depends on.
#pragma once

#include <string_view>

#include "nvlsim/config/value.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// The values of a resolved stack that apply to this hardware, without their sources: of the sections `training`
/// and `inference` only `section`, of tables by GPU, NVLink generation or fabric only the entries of `p` and those
/// they are like.
value stack_values(const value& resolved, const platform& p, std::string_view section);

}  // namespace nvlsim
