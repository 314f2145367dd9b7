#include "network/fabric_path.hpp"

#include <algorithm>
#include <cmath>

namespace nvlsim::network {
namespace {

/// Ports of a leaf towards NICs, and up-links.
struct leaf_links {
  double down, up;
};
leaf_links links_of(const fabric_spec& f) {
  const double share = f.oversubscription / (1 + f.oversubscription);
  const double down = std::min(std::floor(f.leaf.ports * share + 1e-9), f.leaf.ports - 1.0);
  return {down, std::ceil(down / f.oversubscription - 1e-9)};
}

/// Ports that the NICs of so many GPUs take.
double ports_of(const fabric_spec& f, double gpus) {
  const double nics = std::ceil(gpus / f.gpus_per_nic);
  if (f.leaf.port_bandwidth <= bandwidth{}) return nics;
  return nics * std::max(1.0, std::ceil(f.gpus_per_nic * f.nic_bandwidth / f.leaf.port_bandwidth * (1 - 1e-9)));
}

/// Share of a leaf's up-links that its traffic can use.
double usable_share(const fabric_spec& f, const leaf_links& leaf, double installed_ports) {
  const double spines = std::max(1.0, std::ceil(std::ceil(installed_ports / leaf.down) * leaf.up / f.leaf.ports));
  const double lost = f.failed_cables + leaf.up * std::min(1.0, f.failed_spines / spines);
  const double left = std::max(leaf.up - lost, 1.0);
  switch (f.routing) {
    case fabric_routing::fixed:
      // What a broken cable carried goes over one that has its own.
      return lost > 0 ? 1 / std::ceil(leaf.up / left) : 1;
    case fabric_routing::hashed:
      return left / leaf.up / fullest_bin(left, f.connections);
    default:
      return left / leaf.up;
  }
}

}  // namespace

double fullest_bin(double bins, int mean) {
  // Expected number of bins with more than x is below a half: the tail of a Poisson distribution.
  double term = std::exp(-mean), below = term;
  int x = 0;
  while (bins * (1 - below) >= 0.5 && x < 100 * mean + 100) {
    ++x;
    term *= static_cast<double>(mean) / x;
    below += term;
  }
  return std::max(1.0, static_cast<double>(x) / mean);
}

fabric_path path_between(const platform& p, int ranks, bool aligned) {
  const fabric_spec& f = p.fabric;
  double ports = ports_of(f, ranks);
  if (aligned) ports = std::ceil(ports / f.rails);
  if (f.leaf.ports < 4) return {f.nic_bandwidth, 1};  // nothing is known of the switches
  const leaf_links leaf = links_of(f);
  const double installed = ports_of(f, p.gpus());
  if (ports <= leaf.down || installed <= f.leaf.ports) return {f.nic_bandwidth, 1};
  int switches = 3;
  for (double reach = leaf.down * f.leaf.ports; reach < ports; reach *= f.leaf.ports / 2.0) switches += 2;
  const double share = usable_share(f, leaf, installed);
  return {f.nic_bandwidth * (share / f.oversubscription), switches};
}

}  // namespace nvlsim::network
