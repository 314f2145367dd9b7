// Limits of workers, and checks against them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/memory.hpp"

namespace nvlsim {

/// Most requests per run. More would add no information and exceed the memory of a laptop.
inline constexpr std::int64_t max_requests = 10'000'000;
/// Appends a reason if there are more requests than `max_requests`. `whose` follows the number (" per replica").
void refuse_many(std::vector<std::string>& reasons, std::int64_t requests, const char* whose = "");

/// Whether requests are dealt to replicas before the start, so that each serves alone: all that come at once or
/// from clients, in turn, with constant or uniform lengths. All replicas then get the same lengths.
bool dealt(const inference_workload& w);

/// Limits of a worker, without clients. Every rank of attention data parallelism adds its own batch and token
/// budget. A static batch starts whole, whatever the engine's settings.
schedule_limits limits_of(const inference_profile& engine, const inference_workload& w,
                          const serving_memory& memory);

/// KV tokens that a request of `tokens` tokens holds at its end, in whole blocks.
std::int64_t held_tokens(const schedule_limits& l, std::int64_t tokens);
/// Most KV tokens of one request. Ranks of attention data parallelism hold whole sequences.
std::int64_t max_request_tokens(const schedule_limits& l);

/// Limits of a worker that only prefills.
schedule_limits of_prompts_alone(schedule_limits l);

/// A note if a whole prompt of `prompt` tokens does not fit the token budget together with the decodes of up to
/// `clients` clients; empty if it fits or prompts are chunked.
std::string prompts_held_up(const schedule_limits& l, std::int64_t prompt, std::int64_t clients);

}  // namespace nvlsim
