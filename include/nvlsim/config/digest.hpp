// A fingerprint of resolved inputs.
#pragma once

#include <string>

#include "nvlsim/config/value.hpp"

namespace nvlsim::config {

/// 16 hexadecimal digits of the FNV-1a hash of a value's content: equal values, equal digests, whatever the order
/// of object members.
std::string digest(const value& v);

}  // namespace nvlsim::config
