// The scheduler of one worker in token time: an oracle for the server, without a clock.
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/serving/inference.hpp"
#include "serving/batch_scheduler.hpp"

namespace nvlsim::test {

struct loop_limits : schedule_limits {
  std::int64_t concurrency = 0;  ///< most requests in flight; 0: all arrive at the start
};

/// Progress of a request, as iteration indices.
struct token_progress {
  std::int64_t input = 0, output = 0;
  std::int32_t arrived = 0, admitted = 0, first_token = 0, last_token = 0;
};

struct batching_schedule {
  std::vector<iteration> iterations;
  std::vector<token_progress> requests;
  std::int64_t peak_kv_tokens = 0;
  std::vector<std::int64_t> kv_tokens;  ///< held, by iteration
};

inline batching_schedule schedule_requests(const request_lengths& lengths, const loop_limits& limits) {
  batching_schedule out;
  for (const auto& [input, output] : lengths) out.requests.push_back({.input = input, .output = output});
  batch_scheduler one(limits);
  std::size_t sent = 0, seen = 0;  // requests sent by clients, and seen by the engine
  const auto see = [&] {
    for (; seen < sent; ++seen)
      one.submit(static_cast<std::int32_t>(seen), lengths[seen].first, lengths[seen].second);
  };
  const std::size_t clients =
      limits.concurrency > 0 ? static_cast<std::size_t>(limits.concurrency) : lengths.size();
  sent = std::min(clients, lengths.size());
  see();
  while (!one.idle()) {
    const auto now = static_cast<std::int32_t>(out.iterations.size());
    out.iterations.push_back(one.step());
    out.kv_tokens.push_back(one.kv_tokens());
    see();
    const auto at = [&](std::int32_t i) -> token_progress& { return out.requests[static_cast<std::size_t>(i)]; };
    for (const auto& a : one.last().admitted) at(a.request).admitted = now;
    for (const std::int32_t i : one.last().first_tokens) at(i).first_token = now;
    for (const std::int32_t i : one.last().finished) {
      at(i).last_token = now;
      if (sent == lengths.size()) continue;
      // The client sends its next request, too late for the iteration that begins now.
      out.requests[sent++].arrived = static_cast<std::int32_t>(out.iterations.size());
    }
    if (one.idle()) see();
  }
  out.peak_kv_tokens = one.peak_kv_tokens();
  return out;
}

/// All requests at the start, the whole output reserved.
inline batching_schedule schedule_offline(const request_lengths& lengths, std::int64_t max_num_tokens,
                                          std::int64_t max_batch_size, prefill_policy prefill,
                                          std::int64_t kv_capacity_tokens, int kv_block_tokens) {
  loop_limits l;
  l.settings.prefill = prefill;
  l.settings.max_num_tokens = max_num_tokens;
  l.settings.max_batch_size = max_batch_size;
  l.kv_capacity_tokens = kv_capacity_tokens;
  l.kv_block_tokens = kv_block_tokens;
  return schedule_requests(lengths, l);
}

}  // namespace nvlsim::test
