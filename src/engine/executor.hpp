// How the operations of a run take their time: the one thing the fidelities do differently.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/session.hpp"
#include "nvlsim/plan/plan.hpp"

namespace nvlsim::engine {

/// The class whose operation runs and the one that receives what it sends.
struct endpoints {
  std::int32_t from = 0, to = no_peer;
};

class executor {
 public:
  virtual ~executor() = default;
  /// Called by the actor of a stream, which it blocks while `w` runs. `begin` is exact, where the clock may be off
  /// by its resolution; so is the end that it returns.
  virtual double run(const work_template& w, endpoints at, double begin) = 0;
  /// SimGrid activities started so far.
  std::int64_t activities() const { return activities_; }

 protected:
  std::int64_t activities_ = 0;
};

/// Every operation takes its closed time.
std::unique_ptr<executor> make_closed_executor(const session& s);

/// Sleeps until `end`, which `w` began early enough to reach. Returns whether it had to sleep; throws
/// internal_error when the clock is past `end`.
bool sleep_to_end(const session& s, const work_template& w, double end);

}  // namespace nvlsim::engine
