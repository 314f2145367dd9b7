#include "nvlsim/run/child.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/simulator/simulation.hpp"

namespace nvlsim {
namespace {

/// Writes everything or exits: a child that cannot write has no way to report it.
void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(static_cast<int>(exit_code::internal));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

child_process start_child(const std::function<std::string()>& speak) {
  load_simulator();  // once for all children
  int ends[2];
  if (::pipe(ends) != 0) throw internal_error(fmt::format("pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) throw internal_error(fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the child must not outlive its parent
    if (::getppid() != parent) std::_Exit(1);
    ::close(ends[0]);
    write_all(ends[1], speak());
    std::_Exit(0);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

int end_of(const child_process& c) {
  int state = 0;
  while (::waitpid(c.pid, &state, 0) < 0 && errno == EINTR) {
  }
  return state;
}

bool was_ended(int state) {
  constexpr std::array by_others = {SIGKILL, SIGTERM, SIGXCPU, SIGXFSZ};
  return WIFSIGNALED(state) && std::find(by_others.begin(), by_others.end(), WTERMSIG(state)) != by_others.end();
}

std::string silence_reason(int state) {
  if (!WIFSIGNALED(state)) return "the simulation ended without a result";
  if (was_ended(state))
    return fmt::format("ended by signal {} ({}), probably by a memory, CPU or file-size limit or by a user",
                       WTERMSIG(state), ::strsignal(WTERMSIG(state)));
  return fmt::format("killed by signal {} ({})", WTERMSIG(state), ::strsignal(WTERMSIG(state)));
}

}  // namespace nvlsim
