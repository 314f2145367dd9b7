// Reading jobs on a cluster over days to months.
#pragma once

#include "scenario/nested_reader.hpp"

namespace nvlsim {

/// Reads `/workload` of kind "operation" and `/jobs` of a scenario on platform `p`.
operation_case read_operation(config::reader& r, const config::document& doc, const platform& p,
                              const scenario_reader& read_alone, diagnostics& problems);
value write_operation(const operation_case& c);

}  // namespace nvlsim
