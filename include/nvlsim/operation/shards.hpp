// Replicas that hold shards of a batch in common, so that the loss of some loses none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace nvlsim {

/// How many shards each replica that is left has to compute, at least, so that all are. There is a shard for each
/// replica, in a ring: shard i is held by replicas i to i + copies - 1. `out`: by replica, whether it is gone.
/// Nothing if a shard has lost all that held it. Linear in the replicas.
std::optional<std::int64_t> fewest_shards(const std::vector<bool>& out, std::int64_t copies);

/// Whether every shard is held by a replica that is left.
bool shards_are_held(const std::vector<bool>& out, std::int64_t copies);

}  // namespace nvlsim
