// What a fabric's leaves and spines leave of a NIC, as they are: oversubscribed, broken, or badly routed.
#pragma once

#include <cstdint>

#include "nvlsim/platform/platform.hpp"

namespace nvlsim::network {

/// Between NICs of `ranks` GPUs that all send at once.
struct fabric_path {
  bandwidth nic;     ///< what one GPU gets
  int switches = 1;  ///< on the way
};

/// Beyond one leaf, what it has of up-links is shared. `aligned` traffic keeps to its rail: it passes the spines
/// only where a rail needs more than one leaf. Throws input_error where more spines or cables failed than there
/// are. [docs/collectives.md#fabric-conditions]
fabric_path path_between(const platform& p, int ranks, bool aligned);
/// Between GPUs `apart` from each other by their numbers, of which all send at once: those of a leaf share its
/// up-links whose partners lie beyond its end.
fabric_path path_of_shift(const platform& p, std::int64_t apart);

/// The fullest of `bins` when each gets `mean` connections on average by a hash, over that mean.
double fullest_bin(double bins, int mean);

}  // namespace nvlsim::network
