// Tiers of KV caches in scenarios. [docs/scenario-format.md#cache-tiers]
#pragma once

#include <vector>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

std::vector<cache_tier> read_cache_tiers(config::reader& workload);
value write_cache_tiers(const std::vector<cache_tier>& tiers);

}  // namespace nvlsim
