#include "workload/network_demand.hpp"

#include <algorithm>

namespace nvlsim {
namespace {

seconds busy(const port_bytes& b, bandwidth capacity) {
  const bytes most = std::max(b.out, b.in);
  return most > bytes{} ? most / capacity : seconds{};
}

port_bytes scaled(const port_bytes& b, double factor) { return {b.out * factor, b.in * factor}; }

}  // namespace

network_demand demand_on(const platform& p, const network_traffic& t, seconds duration, seconds latency) {
  const seconds wire = std::max(busy(t.nvlink, p.gpu.nvlink), busy(t.nic, p.fabric.nic_bandwidth));
  if (wire <= duration) return {t, std::clamp(latency, seconds{}, duration - wire)};
  const double carried = duration / wire;
  return {{scaled(t.nvlink, carried), scaled(t.nic, carried)}, seconds{}};
}

}  // namespace nvlsim
