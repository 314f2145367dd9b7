// A SimGrid engine with the settings that make it exact.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/compat.hpp"

namespace nvlsim::engine {

/// Two dates this close are one to SimGrid, and no sleep is shorter. [docs/models-and-assumptions.md#engine]
inline constexpr double clock_resolution_s = 1e-9;

/// Owns the engine of the process: there can be one at a time. Silences SimGrid's log (what goes wrong comes as an
/// exception of ours) and leaves the handling of Ctrl-C as it was.
class session {
 public:
  session();
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  compat::sg4::Engine& engine() { return *engine_; }
  /// Simulated seconds since this session began; SimGrid's own clock goes on from one engine to the next.
  double now() const { return compat::sg4::Engine::get_clock() - start_; }
  /// Blocks the calling actor until `date`, and returns whether it had to: what is left may be less than the
  /// resolution, which SimGrid would stretch.
  bool sleep_until(double date) const;
  /// How far `date` may be off the clock without being wrong.
  double tolerance() const;

 private:
  std::unique_ptr<compat::sg4::Engine> engine_;
  double start_ = 0;
};

/// "network/model=CM02" and so on for every setting that is not as wanted; empty when all are. An engine must
/// exist.
std::vector<std::string> wrong_settings();

}  // namespace nvlsim::engine
