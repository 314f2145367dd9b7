// Reading members that name a file, a framework or a service.
#pragma once

#include <string>

#include "nvlsim/config/reader.hpp"

namespace nvlsim {

/// Reads a required member that names something. Empty text is a problem.
inline std::string read_name(config::reader& r, const char* key) {
  std::string name = r.string(key);
  if (const value* given = r.raw(key); name.empty() && given && given->string()) r.fail(key, "must not be empty");
  return name;
}

}  // namespace nvlsim
