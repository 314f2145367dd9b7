#include <algorithm>
#include <cmath>

#include "nvlsim/serving/inference.hpp"
#include "serving/batch_scheduler.hpp"

namespace nvlsim {

std::int64_t decode_steps(std::int64_t tokens, double tokens_per_step) {
  return tokens == 0 ? 0 : std::max<std::int64_t>(1, std::llround(static_cast<double>(tokens) / tokens_per_step));
}

batching_schedule schedule_requests(const request_lengths& lengths, const schedule_limits& limits) {
  batching_schedule out;
  out.requests.reserve(lengths.size());
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
    const auto at = [&](std::int32_t i) -> request_progress& { return out.requests[static_cast<std::size_t>(i)]; };
    for (const auto& [i, cached] : one.last().admitted) at(i).admitted = now;
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

}  // namespace nvlsim
