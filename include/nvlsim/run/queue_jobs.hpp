// The jobs of a cluster's queue as a table.
#pragma once

#include <iosfwd>

#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Whether the scenario is an operation with a queue.
bool has_queue(const scenario& s);
/// Plays the first seed and writes its jobs as CSV: docs/scheduling.md#jobs-csv. Requires a queue.
void write_queue_jobs(std::ostream& out, const scenario& s);
/// The same as a Chrome trace. `metadata` are members of its metadata.
void write_queue_trace(std::ostream& out, const scenario& s, const value& metadata);

}  // namespace nvlsim
