// Which shards of a batch survive when replicas that share them are lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace nvlsim {

/// Minimum number of shards each surviving replica must compute so that every shard is computed. There is one
/// shard per replica, in a ring: replicas i to i + copies - 1 hold shard i. `out`: by replica, whether it is lost.
/// Empty if all holders of a shard are lost. Takes linear time in the replicas.
std::optional<std::int64_t> fewest_shards(const std::vector<bool>& out, std::int64_t copies);

/// Whether a surviving replica holds every shard.
bool shards_are_held(const std::vector<bool>& out, std::int64_t copies);

}  // namespace nvlsim
