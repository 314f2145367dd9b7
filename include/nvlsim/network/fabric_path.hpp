// Bandwidth of a NIC across a fabric that may be oversubscribed, damaged or badly routed.
#pragma once

#include <cstdint>

#include "nvlsim/platform/platform.hpp"

namespace nvlsim::network {

/// The path between two NICs while all GPUs send at once.
struct fabric_path {
  bandwidth nic;       ///< available to each GPU
  int switches = 1;    ///< along the path
  double leaving = 0;  ///< share of the traffic that crosses the up-links of its leaf
};

/// The path among `ranks` GPUs. Beyond one leaf, GPUs share the up-links of their leaf. `aligned` traffic stays on
/// its rail, and crosses the spines only if the rail has more than one leaf; other traffic crosses them to the
/// GPUs on other rails. Throws input_error if no spine or no up-link is left.
/// [docs/collectives.md#fabric-conditions]
fabric_path path_between(const platform& p, int ranks, bool aligned);
/// The path when every GPU sends to the GPU whose number is higher by `stride`. The GPUs of a leaf whose partners
/// are on another leaf share its up-links.
fabric_path path_of_shift(const platform& p, std::int64_t stride);

/// What each GPU gets of its leaf's up-links when the fraction `busy` of all GPUs sends at once. The NIC's
/// bandwidth where up-links limit nothing: the fabric is non-blocking and whole, fits in one leaf, or has no known
/// switches.
bandwidth uplink_of(const platform& p);

/// The leaf of a GPU's NIC. Leaves of one rail have consecutive numbers. Requires known switches.
std::int64_t leaf_of(const platform& p, std::int64_t gpu);
/// Whether the NICs of all GPUs are on one leaf. False if the switches are not known.
bool is_one_leaf(const platform& p);
/// GPUs whose NICs fill a leaf.
double gpus_per_leaf(const platform& p);

/// The most connections in one of `bins`, over the mean, when a hash distributes `mean` connections per bin. If
/// the mean is below one, many bins are empty.
double fullest_bin(double bins, double mean);

}  // namespace nvlsim::network
