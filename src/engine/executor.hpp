// How the operations of a run take their time: the one thing the three fidelities do differently.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/session.hpp"
#include "nvlsim/plan.hpp"
#include "nvlsim/simulation.hpp"

namespace nvlsim::engine {

class executor {
 public:
  virtual ~executor() = default;
  /// Called by the actor of a stream, which it blocks while `w` runs. `begin` is exact, where the clock may be off
  /// by its resolution; so is the end that it returns.
  virtual double run(const work_template& w, double begin) = 0;
  /// SimGrid activities started so far.
  std::int64_t activities() const { return activities_; }

 protected:
  std::int64_t activities_ = 0;
};

/// Throws input_error for a fidelity that is not available.
std::unique_ptr<executor> make_executor(fidelity f, const session& s);

}  // namespace nvlsim::engine
