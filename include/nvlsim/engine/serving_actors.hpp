// Serves requests on the simulation engine, SimGrid.
#pragma once

#include <vector>

#include "nvlsim/engine/simulation.hpp"
#include "nvlsim/serving/server.hpp"

namespace nvlsim {

/// Plays servers with actors on the platform's hosts: one per worker, one per prefill worker that sends its
/// caches, and one per server that brings requests. In `closed`, iterations and transfers take their own times,
/// and the outcome is that of `serve_by_queue` to 1e-9. In `flow`, the transfers of KV caches share the ports of
/// workers. Throws as `simulate`; the same rules for repeated calls hold.
served_cases serve_by_actors(const std::vector<server_case>& cases, const platform& hardware,
                             const simulation_options& options = {});

}  // namespace nvlsim
