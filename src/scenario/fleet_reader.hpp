// Reading serving fleets of an operation.
#pragma once

#include "nvlsim/scenario/fleet_case.hpp"
#include "scenario/nested_reader.hpp"

namespace nvlsim {

/// Reads the object `"fleet"` of the workload of an operation on platform `p` that runs for `duration`; null if
/// there is none.
std::shared_ptr<const fleet_case> read_fleet(config::reader& workload, const config::document& doc,
                                             const platform& p, seconds duration,
                                             const scenario_reader& read_alone, diagnostics& problems);
value write_fleet(const fleet_case& f);

}  // namespace nvlsim
