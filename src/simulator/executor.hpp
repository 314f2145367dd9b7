// How operations take their time, which is the only difference between the fidelities.
#pragma once

#include <cstdint>
#include <memory>

#include "nvlsim/plan/plan.hpp"
#include "simulator/session.hpp"

namespace nvlsim::simulator {

/// The class of the running operation, and the class that receives what it sends.
struct endpoints {
  std::int32_t from = 0, to = no_peer;
};

class executor {
 public:
  virtual ~executor() = default;
  /// Blocks the calling actor while `w` runs, and returns the end of `w`. `begin` and the returned end are exact,
  /// unlike the clock, which is limited by its resolution.
  virtual double run(const operation_template& w, endpoints at, double begin) = 0;
  /// Number of SimGrid activities started so far.
  std::int64_t activities() const { return activities_; }

 protected:
  std::int64_t activities_ = 0;
};

/// Every operation takes its `closed` time.
std::unique_ptr<executor> make_closed_executor(const session& s);

/// Sleeps until `end`, the end of `w`. Returns whether it had to sleep. Throws internal_error if `end` has passed.
bool sleep_to_end(const session& s, const operation_template& w, double end);

}  // namespace nvlsim::simulator
