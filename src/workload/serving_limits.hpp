// What both ways to simulate serving, with a clock and in token time, ask of the engine.
#pragma once

#include <string>

#include "nvlsim/inference.hpp"

namespace nvlsim {

/// Limits of a lane, without clients. Ranks of attention data parallelism each bring their own batch and token budget; a
/// static batch enters whole and alone, whatever the engine's habits.
schedule_limits limits_of(const inference_profile& engine, const inference_workload& w, std::int64_t kv_capacity_tokens);

/// Why there can be no cache.
std::string no_cache_left(const memory_report& memory);

}  // namespace nvlsim
