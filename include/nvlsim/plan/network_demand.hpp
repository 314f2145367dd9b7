// Demands of collectives on network ports, from their costs.
#pragma once

#include <string_view>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// As much traffic as `factor` times `t`.
network_traffic scaled(const network_traffic& t, double factor);

/// A transfer without other traffic: its time, the time without any bytes, and the traffic through the ports of
/// its busiest rank. The other members are for explanations.
struct priced_transfer {
  seconds time, latency;
  network_traffic traffic = {};
  bytes size = {};
  communicator group = {};
  std::string_view kind = {}, algorithm = {};  ///< "all_gather", "ring"
};
/// Both transfers, one after the other, under the name of the longer one.
priced_transfer operator+(const priced_transfer& a, const priced_transfer& b);

/// Through the collective library. Arguments as for `collective_time`.
priced_transfer price_transfer(const collective_profile& profile, const platform& p, collective c, bytes size,
                               communicator g);

/// The network demand of an operation that takes `t.time`. If the ports can carry the bytes in less time, the rest
/// is latency, up to `t.latency`. If they cannot carry the bytes in that time, the time model assumes less
/// traffic, and the demand is what the ports can carry. [docs/network-fidelities.md#flow]
network_demand demand_on(const platform& p, const priced_transfer& t);

/// The network demands of the exchanges among the parts of an operation that takes `duration`, in bursts. Each
/// burst first has the traffic that overlaps with computation, then the traffic that the operation waits for.
/// Exchanges on the same ports count as one. [docs/network-fidelities.md#passes]
std::vector<network_demand> demands_within(const platform& p, const std::vector<operation_part>& parts,
                                           seconds duration);

}  // namespace nvlsim
