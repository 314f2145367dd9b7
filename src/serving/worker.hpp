// The scheduler of one lane: what each iteration holds, one after the other, whatever they take.
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

/// Prefills `take` tokens of a prompt of which `done` are done: each sees all before it and itself.
void add_prompt(iteration& it, std::int64_t take, std::int64_t done);

/// Sums over the running sequences, so that an iteration costs its changes and not its batch.
class lane {
 public:
  using names = std::span<const prefix_cache::name>;
  /// What befell requests in an iteration, by the numbers they came with.
  struct events {
    std::vector<std::pair<std::int32_t, std::int64_t>> admitted;  ///< with the prompt tokens that were cached
    std::vector<std::int32_t> first_tokens;
    std::vector<std::int32_t> finished;
    std::vector<std::int32_t> preempted;   ///< before it
    std::vector<std::int32_t> resumed;     ///< preempted before: what was computed again gives their next token
    std::vector<std::int32_t> returned;    ///< preempted before: their cache came back before it
    std::vector<std::int32_t> taken_over;  ///< submitted with their cache: they decode from this iteration on
    std::int64_t recomputed_tokens = 0;    ///< cached tokens given up
  };

  explicit lane(const schedule_limits& limits);

  /// A request arrives. `prefixes` must outlive it.
  void submit(std::int32_t request, std::int64_t input, std::int64_t output, names prefixes = {});
  /// A request arrives with the cache of its prompt, its first token known: it decodes as soon as there is room.
  void submit_cached(std::int32_t request, std::int64_t input, std::int64_t output);
  bool idle() const { return decodes_ == 0 && waiting_.empty() && incoming_.empty(); }
  /// The next iteration; requires that the lane is not idle. Throws internal_error when a request fits none.
  iteration step();
  const events& last() const { return events_; }

  std::int64_t queued() const { return static_cast<std::int64_t>(waiting_.size() + incoming_.size() - in_work_); }
  std::int64_t kv_tokens() const { return kv_tokens_; }  ///< held by requests, in whole blocks
  std::int64_t peak_kv_tokens() const { return peak_kv_tokens_; }
  /// Prompt tokens yet to compute and cached tokens of running sequences.
  std::int64_t load() const { return pending_ + context(); }
  /// Prompt tokens of a request that the prefix cache holds now.
  std::int64_t cached_tokens(names prefixes, std::int64_t input) const;

 private:
  struct slot {
    std::int32_t request = 0;
    std::int64_t input = 0;   ///< tokens to cache before it decodes: the prompt, and what came before a preemption
    std::int64_t output = 0;  ///< tokens still to come from then on
    std::int64_t done = 0;    ///< of `input`, cached
    std::int64_t own = 0;     ///< KV tokens held alone, in whole blocks
    std::uint32_t shared = 0;  ///< leading blocks held in the prefix cache
    std::uint32_t life = 0;    ///< changes whenever the slot stops running
    std::size_t joined = 0;    ///< value of decoded_ before its first decode
    std::uint32_t rank = 0;
    bool resumes = false;
    bool swapped = false;    ///< its cache is in CPU memory
    bool delivered = false;  ///< its cache has come from another worker, and no room was taken for it yet
    names prefixes;
  };
  struct ending {
    std::size_t at;
    std::uint32_t slot, life;
    bool operator>(const ending& o) const { return std::pair(at, slot) > std::pair(o.at, o.slot); }
  };

  void poll();
  bool holds_back() const;
  bool ranks_wait();
  void give_rank(slot& s);
  void decode(iteration& it);
  void add_prompts(iteration& it);
  bool may_cut(const slot& s, const iteration& it) const;
  bool admit(std::uint32_t i, const iteration& it, std::int64_t room);
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
  std::int64_t next_blocks(const slot& s) const;
  void await_growth(std::uint32_t i, std::int64_t steps);
  std::int64_t& phase_of(const slot& s);
  std::int64_t in_blocks(double tokens) const;
  std::int64_t reservation(const slot& s) const;
  std::int64_t beside(const slot& s) const { return limits_.sequence.beside(s.input + s.output); }
  std::int64_t steps_of(const slot& s) const { return static_cast<std::int64_t>(decoded_ - s.joined); }
  /// As many sequences run as may, prompts in work included.
  bool full() const { return decodes_ + static_cast<std::int64_t>(in_work_) >= set_.max_batch_size; }
  std::int64_t tokens_of(std::int64_t steps) const;
  std::int64_t cached(const slot& s) const { return s.input + tokens_of(steps_of(s)); }
  std::int64_t context() const { return inputs_ + tokens_of(steps_); }
  void evict_idle();

  engine_settings set_;
  schedule_limits limits_;
  bool exclusive_, grows_, drafts_;
  std::size_t ranks_;                           ///< each works on a prompt of its own
  std::int64_t rank_tokens_;                    ///< that one of them takes
  std::vector<std::int64_t> in_hand_, queued_;  ///< by rank: requests, and those whose prompts have not begun
  events events_;
  std::vector<slot> slots_;
  std::vector<std::uint32_t> unused_;
  /// Not yet looked at; in the order of their turn, the first `in_work_` of them being prompts begun.
  std::deque<std::uint32_t> incoming_, waiting_;
  std::size_t in_work_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> admitted_;  ///< slot and life, in order; some have ended
  std::priority_queue<ending, std::vector<ending>, std::greater<>> endings_;
  std::vector<std::int64_t>
      by_phase_;  ///< running sequences by when they need their next block, at a token a step
  /// The same at several tokens a step: slot and life by the value of decoded_; some have ended.
  std::map<std::size_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>> by_iteration_;
  prefix_cache cache_;
  std::int64_t decodes_ = 0, inputs_ = 0,
               steps_ = 0;  ///< sequences that decode; their prompt tokens and steps so far
  std::int64_t kv_tokens_ = 0, peak_kv_tokens_ = 0, pending_ = 0, swapped_out_ = 0;
  std::int64_t now_ = 0, polled_ = 0, waited_ = 0, rank_waited_ = 0;
  std::int64_t frees_ = 0, refused_at_ = -1;  ///< memory given back so far; what that was at the last refusal
  bool preempted_now_ = false, had_prompts_ = false;
  std::size_t decoded_ = 0;  ///< iterations in which sequences could decode
};

/// A lane with the iteration that it runs.
struct lane_at_work {
  explicit lane_at_work(const schedule_limits& l) : engine(l) {}

  lane engine;
  iteration now;
  bool busy = false;
  std::int64_t in_hand = 0;  ///< requests submitted and not finished
  double port_free = 0;      ///< when the caches it sends are gone

  /// What it computes now counts as well: a worker in the last iteration of a prompt is not free.
  std::int64_t load() const { return engine.load() + (busy ? now.prompt_tokens : 0); }
};

/// Which of `count` lanes has the least, by `load` of its number; of equal ones the next in turn.
template <class Load>
std::size_t least_in_turn(std::size_t count, std::size_t& turn, Load load) {
  std::size_t best = turn % count;
  auto least = load(best);
  for (std::size_t k = 1; k < count; ++k) {
    const std::size_t i = (turn + k) % count;
    if (const auto x = load(i); x < least) best = i, least = x;
  }
  turn = best + 1;
  return best;
}

}  // namespace nvlsim
