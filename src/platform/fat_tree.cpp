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

/// Ports of a switch towards the NICs.
std::int64_t ports_down(std::int64_t ports, double oversubscription) {
  const double share = oversubscription / (1 + oversubscription);
  return std::min(static_cast<std::int64_t>(std::floor(static_cast<double>(ports) * share + 1e-9)), ports - 1);
}

/// `top`: ports towards the leaves of a switch of the top level.
fat_tree tree_of(const fabric_spec& fabric, std::int64_t gpus, std::int64_t top) {
  const std::int64_t ports = fabric.leaf.ports;
  fat_tree tree;
  const std::int64_t links_down = divide_up(gpus, fabric.gpus_per_nic) * ports_per_nic(fabric);
  if (links_down <= ports) {
    tree.levels = 1;
    tree.switches = {1};
    return tree;
  }
  // [docs/hardware.md#fat-trees] A leaf has `down` NICs and `up` links. A middle switch has as many links down as
  // up. A top switch has links down only.
  const std::int64_t down = ports_down(ports, fabric.oversubscription);
  const auto up = static_cast<std::int64_t>(std::ceil(static_cast<double>(down) / fabric.oversubscription - 1e-9));
  const std::int64_t half = ports / 2;

  tree.switches.push_back(divide_up(links_down, down));
  std::int64_t links = tree.switches.back() * up;
  tree.cables = links;
  // The top level connects `parts`: each of its switches has a link to every part.
  for (std::int64_t parts = tree.switches.back(); parts > top; parts = divide_up(parts, half)) {
    tree.switches.push_back(divide_up(links, half));
    links = tree.switches.back() * half;
    tree.cables += links;
  }
  tree.switches.push_back(divide_up(links, top));
  tree.levels = static_cast<int>(tree.switches.size());
  return tree;
}

/// Pods of `each` GPUs, and switches above their spines.
fat_tree tree_of_pods(const fabric_spec& f, std::int64_t gpus, std::int64_t each) {
  const std::int64_t top = ports_down(f.leaf.ports, f.pod_oversubscription), pods = divide_up(gpus, each);
  fat_tree tree = tree_of(f, each, top);
  if (tree.levels == 1) tree.switches.front() = divide_up(divide_up(each, f.gpus_per_nic) * ports_per_nic(f), top);
  for (std::int64_t& level : tree.switches) level *= pods;
  const auto links = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(tree.switches.back() * top) / f.pod_oversubscription - 1e-9));
  tree.cables = tree.cables * pods + links;
  tree.switches.push_back(divide_up(links, f.leaf.ports));
  tree.levels = static_cast<int>(tree.switches.size());
  return tree;
}

}  // namespace

fat_tree size_fat_tree(const fabric_spec& fabric, std::int64_t gpus) {
  if (fabric.gpus_per_nic < 1) throw std::invalid_argument("less than one GPU shares a NIC");
  if (fabric.leaf.ports < 4) throw std::invalid_argument("a fat tree needs switches of four ports or more");
  if (!(fabric.oversubscription >= 1) || !(fabric.pod_oversubscription >= 1))
    throw std::invalid_argument("oversubscription is less than one");
  if (gpus <= 0) return {};
  const bool pods = fabric.pod_gpus > 0 && gpus > fabric.pod_gpus;
  return pods ? tree_of_pods(fabric, gpus, fabric.pod_gpus) : tree_of(fabric, gpus, fabric.leaf.ports);
}

}  // namespace nvlsim
