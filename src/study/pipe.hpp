// What a child process tells its parent.
#pragma once

#include <string_view>

namespace nvlsim {

/// Writes all of a text. A child that cannot has nobody left to tell: it ends the process as our bug.
void write_all(int fd, std::string_view text);

}  // namespace nvlsim
