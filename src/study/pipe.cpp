#include "study/pipe.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "nvlsim/diagnostics.hpp"

namespace nvlsim {

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(static_cast<int>(exit_code::internal));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace nvlsim
