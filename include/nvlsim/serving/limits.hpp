// What both ways to simulate serving, with a clock and in token time, ask of the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/memory.hpp"

namespace nvlsim {

/// Beyond these a run says nothing that a shorter one does not, and would fill the memory of a laptop.
inline constexpr std::int64_t most_requests = 10'000'000;
/// Of a replica in token time, where each is kept.
inline constexpr std::int64_t most_iterations = 2'000'000;
/// Appends what to say of more requests than that, which `whose` tells apart (" a replica", or nothing).
void refuse_many(std::vector<std::string>& reasons, std::int64_t requests, const char* whose = "");

/// Limits of a lane, without clients. Ranks of attention data parallelism each bring their own batch and token
/// budget; a static batch enters whole and alone, whatever the engine's habits.
schedule_limits limits_of(const inference_profile& engine, const inference_workload& w,
                          const serving_memory& memory);

/// KV tokens that a request of so many tokens holds in the end, in whole blocks.
std::int64_t held_tokens(const schedule_limits& l, std::int64_t tokens);
/// KV tokens that one request can have: ranks of attention data parallelism keep whole sequences.
std::int64_t most_of_one(const schedule_limits& l);

/// The longest prompt, and the longest prompt and output together, of requests as they are drawn; 0 of none.
struct request_extent {
  std::int64_t prompt = 0, whole = 0;
};
request_extent extent_of(const request_lengths& lengths);

/// Limits of a lane that has prompts alone.
schedule_limits of_prompts_alone(schedule_limits l);

/// What to say of a lane where a whole prompt of so many tokens finds no room beside the decodes that may run, of
/// `clients` at most; empty where it does, or where prompts are cut.
std::string prompts_held_up(const schedule_limits& l, std::int64_t prompt, std::int64_t clients);

}  // namespace nvlsim
