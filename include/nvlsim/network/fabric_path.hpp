// Bandwidth of a NIC across a fabric that may be oversubscribed, damaged or badly routed.
#pragma once

#include <cstdint>

#include "nvlsim/platform/platform.hpp"

namespace nvlsim::network {

/// The path between two NICs while all GPUs send at once.
struct fabric_path {
  bandwidth nic;       ///< available to each GPU
  int switches = 1;    ///< along the path
  double leaving = 0;  ///< share of the traffic that crosses the up-links of its group (`uplink_of`)
};

/// The path among `ranks` GPUs. Beyond one leaf, GPUs share the up-links of their leaf. `aligned` traffic stays on
/// its rail, and crosses the spines only if the rail has more than one leaf; other traffic crosses them to the
/// GPUs on other rails. Beyond a pod GPUs share its up-links, too: aligned traffic only that of its last domain,
/// other traffic that for the GPUs of other pods. Throws input_error if no spine or no up-link is left.
/// [docs/collectives.md#fabric-conditions]
fabric_path path_between(const platform& p, int ranks, bool aligned);
/// The path when every GPU sends to the GPU whose number is higher by `stride`. The GPUs of a leaf, or pod, whose
/// partners are on another share its up-links.
fabric_path path_of_shift(const platform& p, std::int64_t stride);

/// The level of switches whose up-links several flows share: leaves, or pods where only those limit.
enum class uplink_level { leaves, pods };
uplink_level level_of_uplinks(const platform& p);
/// Whether both levels limit, so that one of them is not simulated where traffic meets.
bool both_levels_limit(const platform& p);
/// Why `flow` refuses such a fabric.
inline constexpr const char* one_level_only =
    "flow shares the up-links of one level of switches, and both leaves (/platform/fabric/oversubscription, "
    "failures, routing) and pods (/platform/fabric/pod_oversubscription) limit; set one of them to 1";

/// What each GPU gets of the up-links of its leaf, or pod, when the fraction `busy` of all GPUs sends at once. The
/// NIC's bandwidth where up-links limit nothing: the fabric is non-blocking and whole, fits in one leaf, or has no
/// known switches.
bandwidth uplink_of(const platform& p);

/// The leaf of a GPU's NIC. Leaves of one rail have consecutive numbers. Requires known switches.
std::int64_t leaf_of(const platform& p, std::int64_t gpu);
/// Whether the NICs of all GPUs are on one leaf. False if the switches are not known.
bool is_one_leaf(const platform& p);
/// GPUs whose NICs fill a leaf.
double gpus_per_leaf(const platform& p);
/// The leaf of a GPU, or its pod where only pods limit: GPUs of one number share up-links.
std::int64_t uplink_group_of(const platform& p, std::int64_t gpu);
/// GPUs whose NICs fill a leaf, or a pod.
double gpus_per_uplink_group(const platform& p);

/// The most connections in one of `bins`, over the mean, when a hash distributes `mean` connections per bin. If
/// the mean is below one, many bins are empty.
double fullest_bin(double bins, double mean);

}  // namespace nvlsim::network
