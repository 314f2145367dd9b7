// From what a collective costs to what it demands of the ports.
#pragma once

#include <string_view>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// What a transfer takes alone, how much of that without any bytes, and what it puts through the ports of its
/// busiest rank; for explanations also what it is.
struct priced_transfer {
  seconds time, latency;
  network_traffic traffic = {};
  bytes size = {};
  comm_group group = {};
  std::string_view kind = {}, algorithm = {};  ///< "all_gather", "ring"
};
/// One after the other, called by the name of the longer one.
priced_transfer operator+(const priced_transfer& a, const priced_transfer& b);

/// By the collective library. Arguments as for `collective_time`.
priced_transfer price_transfer(const collective_profile& profile, const platform& p, collective c, bytes size,
                               comm_group g);

/// What an operation that takes so long demands. Its bytes leave room for the latency where the ports are not
/// full: where they would be, some of the latency was hidden behind bytes; where they cannot carry all in the
/// time, the model that gave it assumes less traffic, and they carry what they can.
/// [docs/network-fidelities.md#flow]
network_demand demand_on(const platform& p, const priced_transfer& t);

/// What the exchanges among the parts of an operation demand, in bursts, each of which has what hides behind a
/// piece of the other work, from its beginning, and then what is waited for; those on the same ports as one.
/// [docs/network-fidelities.md#passes]
std::vector<network_demand> demands_within(const platform& p, const work_template& w);

}  // namespace nvlsim
