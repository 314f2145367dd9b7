#include "simulator/ports.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/network/topology.hpp"

namespace nvlsim::simulator {
std::vector<shared_uplink> uplink_shares(const platform& hardware, std::size_t count) {
  std::vector<shared_uplink> out;
  for (const network::uplink_level level : network::uplink_levels) {
    const bandwidth share = network::uplink_of(hardware, level);
    if (!(share < hardware.fabric.nic_bandwidth)) continue;
    const char* const whose = level == network::uplink_level::pods ? "pod up-links" : "up-links";
    for (std::size_t c = 0; c < count; ++c)
      out.push_back({fmt::format("{} of {}", whose, c), share, {static_cast<std::int32_t>(c)}, level});
  }
  return out;
}

network::zones build_ports(session& s, const platform& hardware, std::size_t ports, bool shared,
                           const std::vector<shared_uplink>& uplinks) {
  std::vector<std::int64_t> gpus(ports);
  std::iota(gpus.begin(), gpus.end(), 0);
  network::topology t = network::describe(hardware, gpus);
  if (shared) t.nvlink.latency = t.fabric.latency = {};
  for (const shared_uplink& u : uplinks)
    t.fabric.aggregates.push_back({u.name, u.capacity, u.capacity, {u.classes.begin(), u.classes.end()}, u.level});
  return network::build(s.simgrid(), t);
}

}  // namespace nvlsim::simulator
