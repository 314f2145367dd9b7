#include "nvlsim/network/fabric_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::network {
namespace {

/// Ports of a leaf: towards NICs, and towards spines.
struct leaf_links {
  double down, up;
};
leaf_links links_of(const fabric_spec& f) {
  const double share = f.oversubscription / (1 + f.oversubscription);
  const double down = std::min(std::floor(f.leaf.ports * share + 1e-9), f.leaf.ports - 1.0);
  return {down, std::ceil(down / f.oversubscription - 1e-9)};
}

/// Leaf ports that the NICs of `gpus` GPUs occupy.
double ports_of(const fabric_spec& f, double gpus) {
  const double nics = std::ceil(gpus / f.gpus_per_nic);
  if (f.leaf.port_bandwidth <= bandwidth{}) return nics;
  return nics * std::max(1.0, std::ceil(f.gpus_per_nic * f.nic_bandwidth / f.leaf.port_bandwidth * (1 - 1e-9)));
}

[[noreturn]] void refuse(const char* member, std::string what) {
  throw input_error({{"platform", fmt::format("/fabric/{}", member), std::move(what), {}}});
}

/// Switches of the top level.
std::int64_t spines_of(const platform& p) {
  const fat_tree tree = size_fat_tree(p.fabric, p.gpus());
  return tree.levels > 1 ? tree.switches.back() : 0;
}

/// Throws if no spine or no up-link would be left.
void check_failures(const platform& p, const leaf_links& leaf) {
  const fabric_spec& f = p.fabric;
  const std::int64_t spines = spines_of(p);
  if (spines == 0)
    refuse(f.failed_spines > 0 ? "failed_spines" : "failed_cables",
           fmt::format(
               "the {} GPUs of {} share one leaf of {} ports, so the fabric has no spines and no cables to them",
               p.gpus(), p.name, f.leaf.ports));
  if (f.failed_spines >= spines)
    refuse("failed_spines",
           fmt::format("{} failed, but the fabric of {} GPUs has only {}; at least one must be left",
                       f.failed_spines, p.gpus(), spines));
  if (f.failed_cables >= leaf.up)
    refuse("failed_cables", fmt::format("{} failed, but a leaf has only {} up-links; at least one must be left",
                                        f.failed_cables, leaf.up));
}

/// Whether all GPUs share one leaf, or the switches are not specified.
bool without_uplinks(const platform& p) {
  return p.fabric.leaf.ports < 4 || ports_of(p.fabric, p.gpus()) <= p.fabric.leaf.ports;
}

/// Share of the switches of the top that works.
double top_share(const platform& p) {
  if (p.fabric.failed_spines == 0) return 1;
  const auto spines = static_cast<double>(spines_of(p));
  return std::max(1.0, spines - p.fabric.failed_spines) / spines;
}

/// Whether the top is above pods, and not above leaves.
bool has_pods(const platform& p) { return p.fabric.pod_gpus > 0 && p.gpus() > p.fabric.pod_gpus; }

/// Share of a leaf's up-links that its traffic can use.
double usable_share(const platform& p, const leaf_links& leaf) {
  const fabric_spec& f = p.fabric;
  double lost = f.failed_cables;
  if (!has_pods(p)) lost += leaf.up * (1 - top_share(p));
  const double left = std::max(leaf.up - lost, 1.0);
  switch (f.routing) {
    case fabric_routing::fixed:
      // The traffic of a broken cable is added to that of another cable.
      return lost > 0 ? 1 / std::ceil(leaf.up / left) : 1;
    case fabric_routing::hashed:
      return left / leaf.up / fullest_bin(left, f.connections * f.busy);
    default:
      return left / leaf.up;
  }
}

/// The path when the share `leaving` of what each GPU sends crosses the up-links of its leaf.
fabric_path beyond(const platform& p, const leaf_links& leaf, double leaving, int switches) {
  const fabric_spec& f = p.fabric;
  const double share = usable_share(p, leaf) / f.oversubscription / f.busy / leaving;
  return {f.nic_bandwidth * std::min(1.0, share), switches, limits(p, uplink_level::leaves) ? leaving : 0};
}

/// The path when each GPU sends to the one `stride` GPUs on: those whose partner is on another leaf share the
/// up-links.
fabric_path shifted(const platform& p, const leaf_links& leaf, double stride, int switches) {
  const fabric_spec& f = p.fabric;
  return beyond(p, leaf, std::min(1.0, ports_of(f, stride) / f.rails / leaf.down), switches);
}

/// What the NICs of a leaf have of its up-links when all send; 1 where it has enough.
double leaf_share(const platform& p) {
  if (without_uplinks(p)) return 1;
  return usable_share(p, links_of(p.fabric)) / p.fabric.oversubscription;
}
/// What the NICs of a pod have of its up-links when all send.
double pod_share(const platform& p) {
  if (!has_pods(p)) return 1;
  return std::min(1.0, leaf_share(p)) * top_share(p) / p.fabric.pod_oversubscription;
}

/// The path if the share `leaving` of its traffic also leaves the pod.
fabric_path beyond_pod(const platform& p, fabric_path path, double leaving) {
  if (!has_pods(p)) return path;
  if (limits(p, uplink_level::leaves)) leaving = std::min(leaving, path.leaving);  // what leaves a pod left a leaf
  if (leaving > 0) {
    const bool known = p.fabric.leaf.ports >= 4;  // else a pod is leaves and spines
    path.switches = std::max(path.switches, known ? 2 * size_fat_tree(p.fabric, p.gpus()).levels - 1 : 5);
    path.nic = std::min(path.nic, p.fabric.nic_bandwidth * (pod_share(p) / p.fabric.busy_of_pod / leaving));
  }
  if (limits(p, uplink_level::pods)) path.leaving_pod = leaving;
  return path;
}

/// Rails of the NICs of a VM.
std::int64_t rails_of(const platform& p) {
  return std::clamp<std::int64_t>(p.fabric.rails.read(), 1, std::max<std::int64_t>(1, p.vm.gpus));
}

}  // namespace

double fullest_bin(double bins, double mean) {
  // The smallest x for which fewer than half a bin is expected to hold more: the tail of a Poisson distribution.
  double term = std::exp(-mean), below = term;
  int x = 0;
  while (bins * (1 - below) >= 0.5 && x < 100 * mean + 100) {
    ++x;
    term *= mean / x;
    below += term;
  }
  return std::max(1.0, x / mean);
}

static fabric_path shift_over_leaves(const platform& p, std::int64_t stride) {
  const fabric_spec& f = p.fabric;
  if (f.leaf.ports < 4) return {f.nic_bandwidth, 1};
  const leaf_links leaf = links_of(f);
  if (f.failed_spines > 0 || f.failed_cables > 0) check_failures(p, leaf);
  const bool one_leaf = std::ceil(ports_of(f, p.gpus()) / rails_of(p)) <= leaf.down;
  if (without_uplinks(p) || one_leaf) return {f.nic_bandwidth, 1};
  return shifted(p, leaf, static_cast<double>(stride), 3);
}

fabric_path path_of_shift(const platform& p, std::int64_t stride) {
  const double pod = std::max(1, p.fabric.pod_gpus.read());
  return beyond_pod(p, shift_over_leaves(p, stride), std::min(1.0, static_cast<double>(stride) / pod));
}

static fabric_path path_over_leaves(const platform& p, int ranks, bool aligned) {
  const fabric_spec& f = p.fabric;
  double ports = ports_of(f, ranks);
  const double rails = rails_of(p), of_rail = std::ceil(ports / rails);
  if (aligned) ports = of_rail;
  if (f.leaf.ports < 4) return {f.nic_bandwidth, 1};  // the switches are not specified
  const leaf_links leaf = links_of(f);
  if (f.failed_spines > 0 || f.failed_cables > 0) check_failures(p, leaf);
  if (without_uplinks(p)) return {f.nic_bandwidth, 1};
  // Peers on other rails are under other leaves, however few GPUs a rail has.
  if (!aligned && rails > 1 && of_rail <= leaf.down) return beyond(p, leaf, 1 - 1 / rails, 3);
  if (ports <= leaf.down) return {f.nic_bandwidth, 1};
  int switches = 3;
  for (double reach = leaf.down * f.leaf.ports; reach < ports; reach *= f.leaf.ports / 2.0) switches += 2;
  // Along a rail only the last domain of a leaf sends to another leaf. Without rails, neighbours may be anywhere.
  if (aligned && f.rails > 1) return shifted(p, leaf, p.gpus_per_rack(), switches);
  return beyond(p, leaf, 1, switches);
}

fabric_path path_between(const platform& p, int ranks, bool aligned) {
  const fabric_path path = path_over_leaves(p, ranks, aligned);
  const double pod = p.fabric.pod_gpus;
  if (!has_pods(p) || ranks <= pod) return beyond_pod(p, path, 0);
  return beyond_pod(p, path, aligned ? std::min(1.0, std::max(1, p.gpus_per_rack()) / pod) : 1 - pod / ranks);
}

bool limits(const platform& p, uplink_level level) {
  if (level == uplink_level::leaves) return leaf_share(p) < 1;
  return pod_share(p) < std::min(1.0, leaf_share(p));
}

bandwidth uplink_of(const platform& p, uplink_level level) {
  if (!limits(p, level)) return p.fabric.nic_bandwidth;
  const double share =
      level == uplink_level::leaves ? leaf_share(p) / p.fabric.busy : pod_share(p) / p.fabric.busy_of_pod;
  return p.fabric.nic_bandwidth * std::min(1.0, share);
}

bandwidth uplink_of(const platform& p) {
  return std::min(uplink_of(p, uplink_level::leaves), uplink_of(p, uplink_level::pods));
}

std::int64_t leaf_of(const platform& p, std::int64_t gpu) {
  const std::int64_t vm = std::max<std::int64_t>(1, p.vm.gpus), rails = rails_of(p);
  const std::int64_t each = vm / rails, place = gpu % vm;  // GPUs of a VM on one rail
  const std::int64_t along = gpu / vm * each + place % each;
  constexpr std::int64_t leaves_of_rail = std::int64_t{1} << 32;
  return std::min(place / each, rails - 1) * leaves_of_rail +
         static_cast<std::int64_t>(static_cast<double>(along) / gpus_per_leaf(p));
}

bool is_one_leaf(const platform& p) { return p.fabric.leaf.ports >= 4 && without_uplinks(p); }

double gpus_per_leaf(const platform& p) {
  return links_of(p.fabric).down / ports_of(p.fabric, p.fabric.gpus_per_nic) * p.fabric.gpus_per_nic;
}

std::int64_t uplink_group_of(const platform& p, uplink_level level, std::int64_t gpu) {
  return level == uplink_level::pods ? gpu / p.fabric.pod_gpus : leaf_of(p, gpu);
}

double gpus_per_uplink_group(const platform& p, uplink_level level) {
  return level == uplink_level::pods ? p.fabric.pod_gpus.read() : gpus_per_leaf(p);
}

}  // namespace nvlsim::network
