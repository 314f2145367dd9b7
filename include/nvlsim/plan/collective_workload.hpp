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
  bytes size;  ///< as nccl-tests defines it
  std::int64_t gpus = 1;
  std::string algorithm;               ///< empty: the usual one of the library or of the ideal network
  std::string protocol;                ///< of the library; empty: the library chooses
  double skew = 1;                     ///< all-to-all through the library: bytes of the busiest rank over the mean
  std::optional<ideal_network> ideal;  ///< nothing: runs through the collective library of the stack
  placement place;                     ///< if it runs through the library
};

/// Maximum number of ranks of an `exact` collective, which simulates every message.
inline constexpr std::int64_t max_exact_ranks = 72;

struct collective_run {
  plan planned;
  platform hardware;      ///< hardware of the plan: the platform, or the ports of the ideal network
  collective_cost cost;   ///< in `closed`
  network_demand demand;  ///< of the busiest rank
  std::optional<collective_spread> spread;  ///< of measured times around the `closed` time
};

/// Every reason why the collective cannot run on this platform; empty if it can.
std::vector<std::string> collective_problems(const platform& p, const collective_workload& w);

/// The collective as one operation, or for `exact` as one operation per message (on an ideal network of at most
/// `max_exact_ranks` ranks). `fold` simulates one rank for all; `exact` ignores it. Requires that
/// collective_problems() is empty. Throws input_error if the algorithm cannot run the collective or the fidelity
/// does not support it.
collective_run plan_collective(const platform& p, const stack& s, const collective_workload& w, fidelity f,
                               bool fold);

}  // namespace nvlsim
