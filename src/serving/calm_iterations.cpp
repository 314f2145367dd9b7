// Iterations that only decode the same sequences, passed over at once. [docs/serving.md#one-simulator]
#include <algorithm>

#include "serving/batch_scheduler.hpp"

namespace nvlsim {

std::int64_t batch_scheduler::calm(std::int64_t most) {
  if (decodes_ == 0 || in_progress_ > 0 || !incoming_.empty()) return 0;
  // Prompts that wait to fill a batch, and multi-token steps, are simulated one by one.
  if (!waiting_.empty() && (set_.batch_wait_iterations > 0 || !blocked())) return 0;
  if (grows_ && drafts_) return 0;
  while (slots_[endings_.top().slot].life != endings_.top().life) endings_.pop();
  const std::int64_t n = std::min(most, static_cast<std::int64_t>(endings_.top().at - decoded_) - 1);
  if (!grows_) return n;
  const std::int64_t idle = held_with_idle() - kv_tokens_;
  std::int64_t held = kv_tokens_ + idle;
  for (std::int64_t i = 0; i < n; ++i) {
    held += growth_after(i);
    if (held > limits_.kv_capacity_tokens) return i;
  }
  return n;
}

void batch_scheduler::contexts(std::int64_t n, std::vector<std::int64_t>& out) const {
  out.clear();
  for (std::int64_t i = 1; i <= n; ++i) out.push_back(inputs_ + tokens_of(steps_ + i * decodes_));
}

/// Applies `n` iterations of empty polls, and counts iterations that ranks spent waiting for prompts.
void batch_scheduler::pass_over_waits(std::int64_t n) {
  const std::int64_t interval = std::max<std::int64_t>(1, set_.poll_interval);
  const std::int64_t first = had_prompts_ ? now_ : std::max(now_, polled_ + set_.poll_interval);
  if (first < now_ + n) polled_ = first + (now_ + n - 1 - first) / interval * interval;
  if (set_.rank_wait_iterations == 0 || ranks_ == 1) return;
  if (each_rank_has_prompt() || decodes_ < static_cast<std::int64_t>(ranks_)) {
    rank_waited_ = 0;
    return;
  }
  const std::int64_t counted = rank_waited_ + n, ends = counted / set_.rank_wait_iterations;
  rank_waited_ = counted % set_.rank_wait_iterations;
  waited_ += n - ends;
}

void batch_scheduler::pass_over(std::int64_t n) {
  clear_events();
  preempted_now_ = false;
  pass_over_waits(n);
  if (grows_) {
    for (std::int64_t i = 0; i < n; ++i) kv_tokens_ += growth_after(i);
    may_hold(cache_.idle() > 0 ? held_with_idle() : kv_tokens_);
    peak_kv_tokens_ = std::max(peak_kv_tokens_, kv_tokens_);
  }
  steps_ += n * decodes_;
  decoded_ += static_cast<std::size_t>(n);
  double before = -1;
  for (std::int64_t i = 0; i < n && before != reserve_; ++i) {
    before = reserve_;
    decay_reserve();
  }
  now_ += n;
  had_prompts_ = false;
}

}  // namespace nvlsim
