#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "nvlsim/platform/platform.hpp"

namespace nvlsim {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Switch ports per NIC: one, or more if the NIC is faster than a port.
std::int64_t ports_per_nic(const fabric_spec& f) {
  if (f.leaf.port_bandwidth <= bandwidth{}) return 1;
  // A rounding error must not give an 800 Gb/s NIC a third port of 400 Gb/s.
  const double ratio = f.gpus_per_nic * f.nic_bandwidth / f.leaf.port_bandwidth;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(ratio * (1 - 1e-9))));
}

}  // namespace

fat_tree size_fat_tree(const fabric_spec& fabric, std::int64_t gpus) {
  const std::int64_t ports = fabric.leaf.ports;
  const double oversubscription = fabric.oversubscription;
  if (fabric.gpus_per_nic < 1) throw std::invalid_argument("less than one GPU shares a NIC");
  if (ports < 4) throw std::invalid_argument("a fat tree needs switches of four ports or more");
  if (!(oversubscription >= 1)) throw std::invalid_argument("oversubscription is less than one");

  fat_tree tree;
  if (gpus <= 0) return tree;
  const std::int64_t links_down = divide_up(gpus, fabric.gpus_per_nic) * ports_per_nic(fabric);
  if (links_down <= ports) {
    tree.levels = 1;
    tree.switches = {1};
    return tree;
  }
  // [docs/hardware.md#fat-trees] A leaf has `down` NICs and `up` links. A middle switch has as many links down as
  // up. A top switch has links down only.
  const double share = oversubscription / (1 + oversubscription);
  const std::int64_t down =
      std::min(static_cast<std::int64_t>(std::floor(static_cast<double>(ports) * share + 1e-9)), ports - 1);
  const std::int64_t up =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(down) / oversubscription - 1e-9));
  const std::int64_t half = ports / 2;

  tree.switches.push_back(divide_up(links_down, down));
  std::int64_t links = tree.switches.back() * up;
  tree.cables = links;
  // The top level connects `pods`: each of its switches has a link to every pod.
  for (std::int64_t pods = tree.switches.back(); pods > ports; pods = divide_up(pods, half)) {
    tree.switches.push_back(divide_up(links, half));
    links = tree.switches.back() * half;
    tree.cables += links;
  }
  tree.switches.push_back(divide_up(links, ports));
  tree.levels = static_cast<int>(tree.switches.size());
  return tree;
}

}  // namespace nvlsim
