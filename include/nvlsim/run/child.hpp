// Child processes that each return one text. SimGrid can be used once per process, and a crash loses only one
// result.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {

/// The system ended a run: it had no more memory, CPU time or disk for it. Not a defect of ours. Exit code 4.
class limit_error : public io_error {
 public:
  using io_error::io_error;
};

struct child_process {
  pid_t pid = 0;
  int from = -1;  ///< pipe with the child's text; end of file when it is complete
};

/// Starts a child that sends the text returned by `speak` and exits. The child dies with its parent, and has the
/// simulation engine loaded. Throws internal_error, or io_error if the simulation engine is missing.
child_process start_child(const std::function<std::string()>& speak);
/// Waits until the child exits. Returns its waitpid status.
int end_of(const child_process& c);
/// Whether the system or a user ended a child with this waitpid status. The system does when memory, CPU time or
/// file size run out.
bool was_ended(int state);
/// Says why a child with this waitpid status sent nothing: "killed by signal 9 (Killed)".
std::string silence_reason(int state);

}  // namespace nvlsim
