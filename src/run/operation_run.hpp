// Runs jobs on a cluster over days to months.
#pragma once

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Prices the jobs' steps, plays the cluster for each seed, and measures.
void run_operation(run_record& out, const scenario& s, const operation_case& c, const run_options& o);

}  // namespace nvlsim
