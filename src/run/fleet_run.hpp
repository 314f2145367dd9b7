// Runs the serving fleet of an operation.
#pragma once

#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Plays the fleet with `seeds` seeds. Fills metrics and breakdown; or reasons, if a service cannot run.
void run_fleet(run_record& out, const scenario& s, const operation_case& c, operation_metrics& m);

}  // namespace nvlsim
