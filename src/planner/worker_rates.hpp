// What one worker of a server holds, alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/planner/plan_question.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// A closed loop on one worker.
struct worker_point {
  double clients = 0, requests_per_s = 0, tpot_s = 0, ttft_s = 0;
};

enum class worker_role { combined, prefill, decode };

/// A shape of a worker, and how it does at each number of clients.
struct rated_worker {
  rank_counts shape;  ///< one replica
  worker_role role = worker_role::combined;
  std::vector<worker_point> points;  ///< more clients later
  double requests_per_s = 0;         ///< within the limits; an estimate
  double tpot_s = 0;                 ///< there
  std::string reason;                ///< why it cannot run
};

/// Ranks of workers up to a size inside a domain: tensor parallel, with experts tensor or expert parallel, and
/// attention data parallel with experts over all ranks.
std::vector<rank_counts> worker_shapes(const scenario& s, std::int64_t gpus);

/// The workload of one worker of a role, with a load of `clients`.
inference_workload alone(const scenario& s, const rank_counts& shape, worker_role role, std::int64_t clients);

/// Rates all shapes in a role, on all processors. Adds the runs to `runs`.
std::vector<rated_worker> rate_workers(const scenario& s, const std::vector<rank_counts>& shapes, worker_role role,
                                       const plan_watch& watch, std::int64_t& runs);

}  // namespace nvlsim
