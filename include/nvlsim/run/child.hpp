// Child processes that each return one text. SimGrid can be used once per process, and a crash loses only one
// result.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace nvlsim {

struct child_process {
  pid_t pid = 0;
  int from = -1;  ///< pipe with the child's text; end of file when it is complete
};

/// Starts a child that sends the text returned by `speak` and exits. The child dies with its parent. Throws
/// internal_error.
child_process start_child(const std::function<std::string()>& speak);
/// Waits until the child exits. Returns its waitpid status.
int end_of(const child_process& c);
/// Says why a child with this waitpid status sent nothing: "killed by signal 9 (Killed)".
std::string silence_reason(int state);

}  // namespace nvlsim
