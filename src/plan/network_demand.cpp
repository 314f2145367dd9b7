#include "nvlsim/plan/network_demand.hpp"

#include <algorithm>
#include <array>

namespace nvlsim {
namespace {

seconds busy(const port_bytes& b, bandwidth capacity) {
  const bytes max = std::max(b.out, b.in);
  return max > bytes{} ? max / capacity : seconds{};
}

/// Exchanges of one operation: those that overlap with its computation, and those that it waits for.
struct exchanges {
  priced_transfer hidden, waited;
};

bool has_traffic(const operation_part& p) { return p.facts && p.facts->traffic != network_traffic{}; }

/// Exchanges on NVLink only, and exchanges that use the NICs.
std::array<exchanges, 2> exchanges_of(const std::vector<operation_part>& parts) {
  std::array<exchanges, 2> out;
  for (const operation_part& p : parts) {
    const seconds waited = p.duration * p.repeat;
    if (!has_traffic(p) || !(waited > seconds{})) continue;
    const double count = p.facts->times * p.repeat;
    const seconds alone = p.facts->alone * count;
    const auto portion = [&](double share, seconds time) {
      const double of_one = share * count;
      return priced_transfer{time, p.facts->latency * of_one, scaled(p.facts->traffic, of_one)};
    };
    exchanges& same = out[p.facts->traffic.nic == port_bytes{} ? 0 : 1];
    const double share = waited < alone ? waited / alone : 1;
    same.waited = same.waited + portion(share, waited);
    if (waited < alone) same.hidden = same.hidden + portion(1 - share, alone - waited);
  }
  return out;
}

/// Number of bursts of exchanges in an operation. A layer has exchanges before and after its kernels. The number
/// is limited, because more bursts take simulation time without changing the result much.
int bursts_of(const std::vector<operation_part>& parts) {
  constexpr int each_layer = 2, max = 16;
  int layers = 1;
  for (const operation_part& p : parts) {
    int same = 0;
    for (const operation_part& q : parts)
      if (has_traffic(p) && has_traffic(q) && q.name == p.name) same += q.repeat;
    layers = std::max(layers, same);
  }
  return std::min(each_layer * std::min(layers, max), max);
}

}  // namespace

network_traffic scaled(const network_traffic& t, double factor) {
  const auto way = [factor](const port_bytes& b) { return port_bytes{b.out * factor, b.in * factor}; };
  return {way(t.nvlink), way(t.nic), way(t.uplink), way(t.pod)};
}

priced_transfer operator+(const priced_transfer& a, const priced_transfer& b) {
  const auto sum = [](const port_bytes& x, const port_bytes& y) { return port_bytes{x.out + y.out, x.in + y.in}; };
  const priced_transfer& longer = b.time > a.time ? b : a;
  return {a.time + b.time,
          a.latency + b.latency,
          {sum(a.traffic.nvlink, b.traffic.nvlink), sum(a.traffic.nic, b.traffic.nic),
           sum(a.traffic.uplink, b.traffic.uplink), sum(a.traffic.pod, b.traffic.pod)},
          a.size + b.size,
          longer.group,
          longer.kind,
          longer.algorithm};
}

priced_transfer price_transfer(const collective_profile& profile, const platform& p, collective c, bytes size,
                               communicator g) {
  const collective_cost cost = collective_time(profile, p, {c, size, g});
  const network_traffic traffic = along(wire_traffic(c, size, g, cost.algorithm), path_of(p, c, g));
  return {cost.time, collective_time(profile, p, {c, {}, g}).time, traffic, size, g, name(c), cost.algorithm};
}

network_demand demand_on(const platform& p, const priced_transfer& t) {
  const seconds wire = std::max({busy(t.traffic.nvlink, p.gpu.nvlink), busy(t.traffic.nic, p.fabric.nic_bandwidth),
                                 busy(t.traffic.uplink, network::uplink_of(p, network::uplink_level::leaves)),
                                 busy(t.traffic.pod, network::uplink_of(p, network::uplink_level::pods))});
  if (wire <= t.time) return {t.traffic, std::clamp(t.latency, seconds{}, t.time - wire), t.time};
  const double carried = t.time / wire;
  return {scaled(t.traffic, carried), seconds{}, t.time};
}

std::vector<network_demand> demands_within(const platform& p, const std::vector<operation_part>& parts,
                                           seconds duration) {
  const std::array<exchanges, 2> all = exchanges_of(parts);
  const seconds hidden = all[0].hidden.time + all[1].hidden.time, waited = all[0].waited.time + all[1].waited.time;
  const seconds cover = std::max(seconds{}, duration - waited);
  const double squeezed = hidden > cover ? cover / hidden : 1;  // into the computation that can hide it
  std::vector<network_demand> out;
  if (!(waited > seconds{})) return out;
  const int bursts = bursts_of(parts);
  const double each = 1.0 / bursts;
  seconds at;
  const auto add = [&](const priced_transfer& t, double share, double of_time) {
    if (!(t.time * of_time > seconds{})) return;
    network_demand d = demand_on(p, {t.time * of_time, t.latency * of_time, scaled(t.traffic, share)});
    d.start = at;
    d.end = at += d.end;
    out.push_back(d);
  };
  for (int i = 0; i < bursts; ++i) {
    const seconds begin = (cover + waited) * (i * each);
    at = begin;
    for (const exchanges& e : all) add(e.hidden, each, squeezed * each);
    at = begin + cover * each;
    for (const exchanges& e : all) add(e.waited, each, each);
  }
  return out;
}

}  // namespace nvlsim
