// Serves requests on the simulation engine, SimGrid.
#pragma once

#include <vector>

#include "nvlsim/serving/server.hpp"
#include "nvlsim/simulator/simulation.hpp"

namespace nvlsim {

/// Plays servers with actors on the platform's hosts: one per worker, one per prefill worker that sends its
/// caches, and one per server that brings requests. In `closed`, iterations and transfers take their own times,
/// and the outcome is that of `serve_by_queue` to 1e-9. In `flow`, the transfers of KV caches and the exchanges of
/// iterations share the ports of workers. Throws as `simulate`; the same rules for repeated calls hold.
served_cases serve_by_actors(const std::vector<server_case>& cases, const platform& hardware,
                             const simulation_options& options = {});

/// Servers beside a plan. Their workers are classes of the plan, which follow each other.
struct placed_servers {
  const std::vector<server_case>* cases = nullptr;
  std::int32_t first_class = 0;
  seconds start = {};  ///< when the servers' own time begins
};
struct joint_outcome {
  timeline times;                    ///< of the plan
  std::vector<served_cases> served;  ///< in the order of the servers, each in its own time
};
/// Runs a plan and servers on one network, in `flow`. The plan has its up-links. Throws as `simulate`.
joint_outcome simulate_jointly(const plan& p, const std::vector<placed_servers>& servers,
                               const platform& hardware);

}  // namespace nvlsim
