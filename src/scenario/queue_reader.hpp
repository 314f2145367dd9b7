// Reading the queue of a cluster.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/platform/platform.hpp"
#include "nvlsim/scheduling/cluster_queue.hpp"

namespace nvlsim {

/// Where a queue stands.
struct queue_place {
  const config::document& doc;  ///< the path of a file is relative to it
  const platform& hardware;
  bool beside_jobs = false;  ///< the scenario has jobs that are simulated themselves
  double played_s = 0;       ///< of all seeds together
};
/// Reads `/workload/queue`.
cluster_queue read_queue(config::reader& r, const queue_place& of, diagnostics& problems);
value write_queue(const cluster_queue& q);

}  // namespace nvlsim
