// Bandwidth of a NIC across a fabric that may be oversubscribed, damaged or badly routed.
#pragma once

#include <array>
#include <cstdint>

#include "nvlsim/platform/platform.hpp"

namespace nvlsim::network {

/// The path between two NICs while all GPUs send at once.
struct fabric_path {
  bandwidth nic;           ///< available to each GPU
  int switches = 1;        ///< along the path
  double leaving = 0;      ///< share of the traffic that crosses up-links of leaves, where they limit
  double leaving_pod = 0;  ///< the same of pods; where leaves limit, too, not more than `leaving`
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

/// Switches whose up-links several flows share. What leaves a pod has left a leaf before.
enum class uplink_level { leaves, pods };
inline constexpr std::array<uplink_level, 2> uplink_levels = {uplink_level::leaves, uplink_level::pods};
/// Whether the NICs below the up-links of a level can send more through the levels below than the up-links carry.
/// Not where the fabric is non-blocking and whole, fits in one leaf or pod, or has no known switches.
bool limits(const platform& p, uplink_level level);

/// What each GPU gets of the up-links of its leaf, or its pod, when the share `busy`, or `busy_of_pod`, of all
/// GPUs there sends at once. The NIC's bandwidth where the level does not limit.
bandwidth uplink_of(const platform& p, uplink_level level);
/// The lesser of both levels.
bandwidth uplink_of(const platform& p);

/// The leaf of a GPU's NIC. Leaves of one rail have consecutive numbers. Requires known switches.
std::int64_t leaf_of(const platform& p, std::int64_t gpu);
/// Whether the NICs of all GPUs are on one leaf. False if the switches are not known.
bool is_one_leaf(const platform& p);
/// GPUs whose NICs fill a leaf.
double gpus_per_leaf(const platform& p);
/// The leaf of a GPU, or its pod: GPUs of one number share the up-links of the level. Requires that it limits.
std::int64_t uplink_group_of(const platform& p, uplink_level level, std::int64_t gpu);
/// GPUs whose NICs fill a leaf, or a pod.
double gpus_per_uplink_group(const platform& p, uplink_level level);

/// The most connections in one of `bins`, over the mean, when a hash distributes `mean` connections per bin. If
/// the mean is below one, many bins are empty.
double fullest_bin(double bins, double mean);

}  // namespace nvlsim::network
