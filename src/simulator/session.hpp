// A SimGrid engine with the settings that make it exact.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/compat.hpp"

namespace nvlsim::simulator {

/// SimGrid treats two dates this close as equal, and no sleep is shorter. [docs/models-and-assumptions.md#engine]
inline constexpr double clock_resolution_s = 1e-9;

/// Owns the SimGrid engine of the process, of which there can be one at a time. Silences SimGrid's log, because
/// errors are reported as exceptions, and does not change the handling of Ctrl-C.
class session {
 public:
  session();
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  compat::sg4::Engine& simgrid() { return *simgrid_; }
  /// Makes room for the stacks of `count` actors. Throws input_error if they would fill half of the machine's
  /// memory.
  void expect_actors(std::size_t count);
  /// Simulated seconds since this session began. SimGrid's own clock continues from one session to the next.
  double now() const { return compat::sg4::Engine::get_clock() - start_; }
  /// Blocks the calling actor until `date`, and returns whether it had to. Does not block for less than the
  /// resolution, which SimGrid would round up.
  bool sleep_until(double date) const;
  /// Dates this close are one: SimGrid's resolution or, after months of simulated time, that of its clock.
  double resolution() const;
  /// Largest difference between `date` and the clock that is no error.
  double tolerance() const;

 private:
  std::unique_ptr<compat::sg4::Engine> simgrid_;
  double start_ = 0;
};

/// The settings that have wrong values, such as "network/model=CM02"; empty if none. Requires a session.
std::vector<std::string> wrong_settings();

}  // namespace nvlsim::simulator
