// The version; CMake checks that it is the project's.
#pragma once

namespace nvlsim {

inline constexpr const char* version = "0.1.0";

}  // namespace nvlsim
