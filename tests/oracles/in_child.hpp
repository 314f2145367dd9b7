// Simulations in processes of their own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <vector>

namespace nvlsim::test {

/// What a simulation returns that runs in a process of its own: SimGrid takes its models once a process.
inline std::vector<double> in_child(const std::function<std::vector<double>()>& simulation) {
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::vector<double> out = simulation();
    const auto size = static_cast<ssize_t>(out.size() * sizeof(double));
    const char* data = reinterpret_cast<const char*>(out.data());
    ssize_t sent = 0;
    while (sent < size) {
      const ssize_t n = ::write(pipe_ends[1], data + sent, static_cast<std::size_t>(size - sent));
      if (n <= 0) std::_Exit(1);
      sent += n;
    }
    std::_Exit(0);
  }
  ::close(pipe_ends[1]);
  std::vector<double> out;
  double d = 0;
  std::size_t have = 0;
  for (ssize_t n = 0; (n = ::read(pipe_ends[0], reinterpret_cast<char*>(&d) + have, sizeof d - have)) > 0;) {
    have += static_cast<std::size_t>(n);
    if (have == sizeof d) out.push_back(d), have = 0;
  }
  ::close(pipe_ends[0]);
  int state = 0;
  ::waitpid(child, &state, 0);
  REQUIRE(state == 0);
  return out;
}

}  // namespace nvlsim::test
