// Reading jobs that share a platform, and the traffic beside them.
#pragma once

#include "nvlsim/config/document.hpp"
#include "nvlsim/config/reader.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "scenario/nested_reader.hpp"

namespace nvlsim {

/// Reads `"jobs"` and `"background"` of a scenario on platform `p`. Each job is read by `read_alone` as a scenario
/// of its own, whose problems are reported at the job's pointers. Jobs on the same GPUs are a problem.
shared_workload read_jobs(config::reader& r, const config::document& doc, const platform& p,
                          const scenario_reader& read_alone, diagnostics& problems);
value write_jobs(const shared_workload& w);

}  // namespace nvlsim
