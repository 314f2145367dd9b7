// Running a plan on the engine.
#pragma once

#include <optional>
#include <string_view>

#include "nvlsim/plan.hpp"
#include "nvlsim/platform.hpp"

namespace nvlsim {

/// How operations that communicate take their time.
enum class fidelity {
  closed,  ///< the modelled time, whatever else goes on
  flow,    ///< a flow per port, slowed by others on the same port
  exact,   ///< every chunk of the algorithm a flow of its own
};
std::string_view name(fidelity f);
std::optional<fidelity> fidelity_by_name(std::string_view name);

struct simulation_options {
  fidelity network = fidelity::closed;
};

/// Runs the plan with one actor per stream that has operations. Dates count from the start of this call. Throws
/// input_error for more than 20,000 actors or a fidelity that is not available, internal_error for a malformed plan or
/// one that deadlocks. One call at a time per process; a second one works, but memory of the first is not all returned
/// and SimGrid's clock goes on, so prefer a process for each.
timeline simulate(const plan& p, const platform& hardware, const simulation_options& options = {});

}  // namespace nvlsim
