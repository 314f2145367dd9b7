// Reading the queue of a cluster.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/platform/platform.hpp"
#include "nvlsim/scheduling/cluster_queue.hpp"

namespace nvlsim {

/// Reads `/workload/queue` of a document on platform `p`. The path of a file is relative to the scenario.
cluster_queue read_queue(config::reader& r, const config::document& doc, const platform& p, diagnostics& problems);
value write_queue(const cluster_queue& q);

}  // namespace nvlsim
