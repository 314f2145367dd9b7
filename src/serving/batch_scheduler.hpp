// Scheduler of one worker: contents of successive iterations, independent of their times.
// [docs/models-and-assumptions.md#inference-scheduler]
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "nvlsim/serving/inference.hpp"
#include "serving/prefix_cache.hpp"

namespace nvlsim {

/// Adds `take` prompt tokens after `done` earlier ones. Each token attends to itself and all before it.
void add_prompt(iteration& it, std::int64_t take, std::int64_t done);

/// Keeps sums over running sequences, so the cost of an iteration is proportional to changes, not to the batch.
class batch_scheduler {
 public:
  using names = std::span<const prefix_cache::name>;
  /// What is known of a prompt before it is computed.
  struct known_prompt {
    names prefixes = {};  ///< of its blocks; must outlive the request
    /// Tokens of the prompt that have been fetched from elsewhere, as positions.
    std::int64_t fetched_from = 0, fetched_to = 0;
    bool expected = false;  ///< it waited at the router or for blocks: the engine has counted on it
  };
  /// A request that begins, with the prompt tokens that need not be computed.
  struct admission {
    std::int32_t request = 0;
    std::int64_t cached = 0;   ///< in the prefix cache, or fetched
    std::int64_t fetched = 0;  ///< of those, what the prefix cache did not have
    friend bool operator==(const admission&, const admission&) = default;
  };
  /// Events of an iteration, by request number.
  struct events {
    std::vector<admission> admitted;
    std::vector<std::int32_t> first_tokens;
    std::vector<std::int32_t> finished;
    std::vector<std::int32_t> preempted;  ///< before the iteration
    std::vector<std::int32_t>
        resumed;  ///< resumed after a preemption by recomputation, which yields their next token
    std::vector<std::int32_t> returned;    ///< resumed after a preemption by swapping their cache back in
    std::vector<std::int32_t> taken_over;  ///< submitted with their cache; decode from this iteration on
    std::int64_t recomputed_tokens = 0;    ///< cached tokens dropped
    std::vector<prefix_cache::name> computed, evicted;  ///< blocks that the prefix cache got and gave up
  };

  explicit batch_scheduler(const schedule_limits& limits);

  void submit(std::int32_t request, std::int64_t input, std::int64_t output, const known_prompt& known);
  void submit(std::int32_t request, std::int64_t input, std::int64_t output) {
    submit(request, input, output, {});
  }
  /// Submits a request with the cache of its prompt and its first token. It decodes as soon as there is room.
  void submit_cached(std::int32_t request, std::int64_t input, std::int64_t output);
  bool idle() const { return decodes_ == 0 && waiting_.empty() && incoming_.empty(); }
  /// Schedules the next iteration. Requires a worker that is not idle. Throws internal_error if a request fits no
  /// iteration.
  iteration step();
  const events& last() const { return events_; }

  /// How many of the next iterations (at most `most`) only decode the sequences of the last one: none of these
  /// ends, and no prompt can begin, unless a request is submitted.
  std::int64_t calm(std::int64_t most);
  /// What the next `n` iterations have, which must be calm.
  std::int64_t decodes() const { return decodes_; }
  void contexts(std::int64_t n, std::vector<std::int64_t>& out) const;
  /// Does what `step` would do in `n` calm iterations. `last` is then empty.
  void pass_over(std::int64_t n);
  /// What was asked of the limits.
  const limits_use& used() const { return used_; }

  std::int64_t queued() const {
    return static_cast<std::int64_t>(waiting_.size() + incoming_.size() - in_progress_);
  }
  std::int64_t kv_tokens() const { return kv_tokens_; }  ///< allocated to requests, in whole blocks
  std::int64_t peak_kv_tokens() const { return peak_kv_tokens_; }
  /// Remaining prompt tokens plus cached tokens of running sequences.
  std::int64_t load() const { return pending_ + context(); }
  /// Whether a new request would be admitted after those waiting: tokens within one iteration's budget, a place
  /// in the batch and memory. After a refusal the answer stays no until something is freed or prompts move on.
  bool has_room(names prefixes, std::int64_t input, std::int64_t output);
  /// Whether the last refusal is still valid.
  bool refuses() const { return no_room_at_ == changes(); }
  /// Prompt tokens of a request that are in the prefix cache.
  std::int64_t cached_tokens(names prefixes, std::int64_t input) const;

 private:
  struct slot {
    std::int32_t request = 0;
    std::int64_t input = 0;   ///< tokens to cache before it decodes: prompt, and output before a preemption
    std::int64_t output = 0;  ///< output tokens after that
    std::int64_t done = 0;    ///< cached tokens of `input`
    std::int64_t fetched_from = 0, fetched_to = 0;  ///< of a prompt that is not admitted yet
    std::int64_t awaits = 0;                        ///< KV tokens for which it waits
    std::int64_t own = 0;                           ///< KV tokens not shared with others, in whole blocks
    std::uint32_t shared = 0;                       ///< number of leading blocks held in the prefix cache
    std::uint32_t life = 0;                         ///< incremented whenever the slot stops running
    std::size_t joined = 0;                         ///< value of decoded_ before its first decode
    std::uint32_t rank = 0;
    bool resumes = false;
    bool swapped = false;    ///< its cache is in CPU memory
    bool expected = false;   ///< the engine knew of it before it came
    bool delivered = false;  ///< its cache has arrived from another worker but has no memory yet
    names prefixes;
  };
  struct ending {
    std::size_t at;
    std::uint32_t slot, life;
    bool operator>(const ending& o) const { return std::pair(at, slot) > std::pair(o.at, o.slot); }
  };

  void clear_events();
  void poll();
  bool holds_back();
  bool each_rank_has_prompt();
  bool ranks_wait();
  void give_rank(slot& s);
  void decode(iteration& it);
  void add_prompts(iteration& it);
  bool may_cut(const slot& s, const iteration& it) const;
  bool admit(std::uint32_t i, const iteration& it, std::int64_t room);
  bool prompt_fits(std::int64_t tokens, std::int64_t room);
  bool may_hold(std::int64_t tokens) { return used_.cache_tokens.lets(tokens, limits_.kv_capacity_tokens); }
  std::int64_t held_with_idle() const {
    return kv_tokens_ + static_cast<std::int64_t>(cache_.idle()) * limits_.prefix_tokens;
  }
  bool take_memory(slot& s, std::int64_t tokens);
  std::uint32_t new_slot(std::int32_t request, std::int64_t input, std::int64_t output);
  void take_up_cached(iteration& it);
  void join(std::uint32_t i, bool decodes_now);
  void finish_prompt(std::size_t at);
  void stop(slot& s);
  void end_requests();
  void free_memory(slot& s);
  void share_blocks(slot& s, std::int64_t tokens);
  void make_room(iteration& it);
  void preempt(iteration& it);
  std::uint32_t last_admitted();
  std::int64_t growth() const;
  std::int64_t growth_after(std::int64_t steps) const;
  void pass_over_waits(std::int64_t n);
  std::int64_t next_blocks(const slot& s) const;
  void await_growth(std::uint32_t i, std::int64_t steps);
  std::int64_t& phase_of(const slot& s);
  std::int64_t in_blocks(double tokens) const;
  std::int64_t to_await(names prefixes, std::int64_t input, std::int64_t output) const;
  std::int64_t changes() const { return frees_ + prompt_iterations_; }
  std::int64_t reservation(const slot& s) const;
  std::int64_t yet_to_come() const;
  void decay_reserve();
  std::int64_t beside(const slot& s) const { return limits_.sequence.beside(s.input + s.output); }
  std::int64_t steps_of(const slot& s) const { return static_cast<std::int64_t>(decoded_ - s.joined); }
  /// Whether the batch is full, including prompts in progress.
  bool full() {
    return !used_.sequences.lets(decodes_ + static_cast<std::int64_t>(in_progress_) + 1, set_.max_batch_size);
  }
  /// Whether no waiting request can begin until memory is freed.
  bool blocked() { return full() || refused_at_ == frees_; }
  std::int64_t tokens_of(std::int64_t steps) const;
  std::int64_t cached(const slot& s) const { return s.input + tokens_of(steps_of(s)); }
  std::int64_t context() const { return inputs_ + tokens_of(steps_); }
  void evict_idle();

  engine_settings set_;
  schedule_limits limits_;
  bool exclusive_, grows_, drafts_;
  std::size_t ranks_;         ///< each rank processes a different prompt
  std::int64_t rank_tokens_;  ///< token budget of one rank
  std::vector<std::int64_t> in_hand_,
      queued_;  ///< by rank: unfinished requests, and those whose prompts have not started
  events events_;
  std::vector<slot> slots_;
  std::vector<std::uint32_t> unused_;
  /// Requests not polled yet, and waiting ones in order. The first `in_progress_` waiting ones are prompts in
  /// progress.
  std::deque<std::uint32_t> incoming_, waiting_;
  std::size_t in_progress_ = 0;
  std::size_t polled_requests_ = 0;  ///< leading incoming ones, which the next iteration can have
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      admitted_;  ///< slot and life in order of admission; may include ended ones
  std::priority_queue<ending, std::vector<ending>, std::greater<>> endings_;
  std::vector<std::int64_t>
      by_phase_;  ///< running sequences by the phase at which they need a new block, at one token per step
  /// The same with several tokens per step: slot and life by value of decoded_; may include ended ones.
  std::map<std::size_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>> by_iteration_;
  prefix_cache cache_;
  std::int64_t decodes_ = 0, inputs_ = 0, outputs_ = 0,
               steps_ = 0;     ///< decoding sequences; their prompt tokens, outputs and steps so far
  std::int64_t promised_ = 0;  ///< outputs of prompts in progress
  double reserve_ = 1;         ///< share of tokens yet to come for which admission keeps room
  std::int64_t kv_tokens_ = 0, peak_kv_tokens_ = 0, pending_ = 0, swapped_out_ = 0;
  std::int64_t now_ = 0, polled_ = 0, waited_ = 0, rank_waited_ = 0;
  std::int64_t frees_ = 0, refused_at_ = -1;  ///< count of memory releases; its value at the last refusal
  std::int64_t prompt_iterations_ = 0,
               no_room_at_ = -1;  ///< iterations with prompts; `changes` when room was refused
  std::int64_t awaited_ = 0;      ///< `awaits` of all that is not admitted
  bool preempted_now_ = false, had_prompts_ = false;
  limits_use used_;
  std::size_t decoded_ = 0;  ///< iterations in which sequences could decode
};

/// A worker and its current iteration.
struct worker_state {
  explicit worker_state(const schedule_limits& l) : scheduler(l) {}

  batch_scheduler scheduler;
  iteration now;
  bool busy = false;
  std::int64_t in_hand = 0;  ///< requests submitted and not finished
  double port_free = 0;      ///< time when all its caches have been sent

  /// Includes the current iteration: a worker in the last iteration of a prompt is not free.
  std::int64_t load() const { return scheduler.load() + (busy ? now.prompt_tokens : 0); }
};

/// The worker of `count` with the smallest `load(worker)`; among equal ones the next in turn.
template <class Load>
std::size_t least_in_turn(std::size_t count, std::size_t& turn, Load load) {
  std::size_t best = turn % count;
  auto min = load(best);
  for (std::size_t k = 1; k < count; ++k) {
    const std::size_t i = (turn + k) % count;
    if (const auto x = load(i); x < min) best = i, min = x;
  }
  turn = best + 1;
  return best;
}

}  // namespace nvlsim
