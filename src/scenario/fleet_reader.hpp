// Reading serving fleets of an operation.
#pragma once

#include "nvlsim/scenario/fleet_case.hpp"
#include "scenario/nested_reader.hpp"

namespace nvlsim {

/// Reads the object `"fleet"` of the workload of an operation on platform `p`, for a day unless its reader says
/// how long; null if there is none.
std::shared_ptr<fleet_case> read_fleet(config::reader& workload, const config::document& doc, const platform& p,
                                       const scenario_reader& read_alone, diagnostics& problems);
value write_fleet(const fleet_case& f);

}  // namespace nvlsim
