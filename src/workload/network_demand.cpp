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

priced_transfer operator+(const priced_transfer& a, const priced_transfer& b) {
  const auto sum = [](const port_bytes& x, const port_bytes& y) { return port_bytes{x.out + y.out, x.in + y.in}; };
  const priced_transfer& longer = b.time > a.time ? b : a;
  return {a.time + b.time,
          a.latency + b.latency,
          {sum(a.traffic.nvlink, b.traffic.nvlink), sum(a.traffic.nic, b.traffic.nic)},
          a.size + b.size,
          longer.group,
          longer.kind,
          longer.algorithm};
}

priced_transfer price_transfer(const collective_profile& profile, const platform& p, collective c, bytes size,
                               comm_group g) {
  const collective_cost cost = collective_time(profile, p, c, size, g);
  return {cost.time,
          collective_time(profile, p, c, {}, g).time,
          wire_traffic(c, size, g, cost.algorithm),
          size,
          g,
          name(c),
          cost.algorithm};
}

network_demand demand_on(const platform& p, const priced_transfer& t) {
  const seconds wire = std::max(busy(t.traffic.nvlink, p.gpu.nvlink), busy(t.traffic.nic, p.fabric.nic_bandwidth));
  if (wire <= t.time) return {t.traffic, std::clamp(t.latency, seconds{}, t.time - wire)};
  const double carried = t.time / wire;
  return {{scaled(t.traffic.nvlink, carried), scaled(t.traffic.nic, carried)}, seconds{}};
}

}  // namespace nvlsim
