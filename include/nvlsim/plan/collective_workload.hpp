// One collective as a workload of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/collectives/ideal_collective.hpp"
#include "nvlsim/layout/layout.hpp"
#include "nvlsim/network/fidelity.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"
#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

struct collective_workload {
  collective operation = collective::all_reduce;
  bytes size;  ///< nccl-tests' size
  std::int64_t gpus = 1;
  std::string algorithm;               ///< empty: the one that the library, or theory, would take
  std::string protocol;                ///< of the library; empty: its choice
  double skew = 1;                     ///< all-to-all through the library: bytes of the busiest rank over the mean
  std::optional<ideal_network> ideal;  ///< nothing: the collective library of the stack
  placement place;                     ///< when there is a library
};

/// The most ranks of a collective whose every message is simulated.
inline constexpr std::int64_t most_exact_ranks = 72;

struct collective_run {
  plan work;
  platform hardware;      ///< that the plan runs on: the platform, or the ports of the ideal network
  collective_cost cost;   ///< closed
  network_demand demand;  ///< of the busiest rank
  std::optional<collective_spread> spread;  ///< of measured times around the closed one
};

/// Why the collective cannot run on this platform; empty when it can.
std::vector<std::string> collective_problems(const platform& p, const collective_workload& w);

/// The collective as one operation, or for `exact` as one operation for each message (on an ideal network of at
/// most `most_exact_ranks`). `fold` simulates one rank for all; `exact` never does. Requires collective_problems()
/// to be empty. Throws input_error when the algorithm cannot run it or the fidelity cannot show it.
collective_run plan_collective(const platform& p, const stack& s, const collective_workload& w, fidelity f,
                               bool fold);

}  // namespace nvlsim
