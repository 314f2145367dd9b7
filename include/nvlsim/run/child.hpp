// Child processes that say one thing: the engine lives once in a process, and a crash costs one result.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace nvlsim {

struct child_process {
  pid_t pid = 0;
  int from = -1;  ///< where it says it; at its end, all has been said
};

/// A child that says what `speak` returns and ends. It does not outlive its parent. Throws internal_error.
child_process start_child(const std::function<std::string()>& speak);
/// Waits for its end: what waitpid says of it.
int end_of(const child_process& c);
/// Why a child that ended so said nothing: "killed by signal 9 (Killed)".
std::string silence_reason(int state);

}  // namespace nvlsim
