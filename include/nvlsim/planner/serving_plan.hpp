// How many users a deployment serves within its limits, and which deployment serves the most. [docs/planning.md]
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/plan_answers.hpp"
#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

/// Requests in flight behind one router. Assumed, so that a run of `in_flight_times` as many is short enough to
/// search with; what routers of frameworks take is not known.
inline constexpr double usual_users_of_router = 15'000;
/// Requests of a run over those in flight. Assumed: fewer are over before the load shows.
inline constexpr double in_flight_times = 4;

/// A model on a platform, with lengths and limits (`slo`). The layout and the load of the base are not used.
struct serving_question {
  plan_base base;
  std::int64_t gpus = 0;      ///< 0: as many as the demand needs; without a demand, one NVLink domain
  double users = 0;           ///< requests in flight that must be held; 0: none asked for
  double requests_per_s = 0;  ///< that must be held; 0: none asked for
  /// Requests in flight behind one router. A larger demand is met by equal copies, each with a router of its own
  /// and an equal share of the requests: runs see enough of their requests come and go, and cost no more.
  double users_of_router = usual_users_of_router;
};

/// Rates workers of every shape alone, combines them, runs the best combinations until the load is found that they
/// hold, and moves GPUs between the pools while that helps. Throws input_error with every problem of the base.
serving_plan plan_serving(const serving_question& q, const plan_watch& watch = {});

}  // namespace nvlsim
