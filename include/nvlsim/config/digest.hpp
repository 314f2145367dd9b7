// A fingerprint of resolved inputs.
#pragma once

#include <string>

#include "nvlsim/config/value.hpp"

namespace nvlsim::config {

/// The FNV-1a hash of a value as 16 hexadecimal digits. Equal values have equal digests; the order of object
/// members does not matter.
std::string digest(const value& v);

}  // namespace nvlsim::config
