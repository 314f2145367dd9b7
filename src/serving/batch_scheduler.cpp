#include "serving/batch_scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {

void limits_use::add(const limits_use& o) {
  sequences.add(o.sequences);
  tokens.add(o.tokens);
  rank_tokens.add(o.rank_tokens);
  cache_tokens.add(o.cache_tokens);
}

batch_limits::batch_limits(const schedule_limits& l)
    : sequences(std::min<std::int64_t>(l.settings.max_batch_size, l.settings.max_num_tokens)),
      tokens(l.settings.max_num_tokens),
      rank_tokens(std::max<std::int64_t>(1, l.settings.max_num_tokens / std::max(l.ranks, 1))),
      cache_tokens(l.kv_capacity_tokens) {}

bool batch_limits::alike(const limits_use& used, const batch_limits& others) const {
  return used.sequences.alike(sequences, others.sequences) && used.tokens.alike(tokens, others.tokens) &&
         used.rank_tokens.alike(rank_tokens, others.rank_tokens) &&
         used.cache_tokens.alike(cache_tokens, others.cache_tokens);
}

batch_scheduler::batch_scheduler(const schedule_limits& limits)
    : set_(limits.settings), limits_(limits), exclusive_(set_.prefill == prefill_policy::exclusive),
      grows_(set_.preemption != preemption_policy::none), drafts_(limits.tokens_per_step != 1),
      ranks_(static_cast<std::size_t>(std::max(limits.ranks, 1))), rank_tokens_(batch_limits(limits).rank_tokens),
      in_hand_(ranks_), queued_(ranks_), by_phase_(static_cast<std::size_t>(limits.kv_block_tokens)) {
  set_.max_batch_size = batch_limits(limits).sequences;
  reserve_ = grows_ ? set_.kv_reserve.read() : 1.0;
}

std::uint32_t batch_scheduler::new_slot(std::int32_t request, std::int64_t input, std::int64_t output) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t i = unused_.back();
  unused_.pop_back();
  const std::uint32_t life = slots_[i].life;
  slots_[i] = {};
  slots_[i].request = request;
  slots_[i].input = input;
  slots_[i].output = output;
  slots_[i].life = life;
  return i;
}

void batch_scheduler::submit(std::int32_t request, std::int64_t input, std::int64_t output,
                             const known_prompt& known) {
  const std::uint32_t i = new_slot(request, input, output);
  slots_[i].prefixes = known.prefixes;
  slots_[i].fetched_from = known.fetched_from;
  slots_[i].fetched_to = known.fetched_to;
  awaited_ += slots_[i].awaits = to_await(known.prefixes, input, output);
  give_rank(slots_[i]);
  slots_[i].expected = known.expected || in_hand_[slots_[i].rank] == 1;  // nothing else is there for its rank
  incoming_.push_back(i);
  pending_ += input;
}

void batch_scheduler::submit_cached(std::int32_t request, std::int64_t input, std::int64_t output) {
  const std::uint32_t i = new_slot(request, input, output);
  slots_[i].delivered = slots_[i].expected = true;
  give_rank(slots_[i]);
  --queued_[slots_[i].rank];
  incoming_.push_back(i);
}

/// Assigns a request to the rank with the fewest requests.
void batch_scheduler::give_rank(slot& s) {
  s.rank = static_cast<std::uint32_t>(std::min_element(in_hand_.begin(), in_hand_.end()) - in_hand_.begin());
  ++in_hand_[s.rank];
  ++queued_[s.rank];
}

void batch_scheduler::clear_events() {
  events_.admitted.clear();
  events_.first_tokens.clear();
  events_.finished.clear();
  events_.preempted.clear();
  events_.resumed.clear();
  events_.returned.clear();
  events_.taken_over.clear();
  events_.recomputed_tokens = 0;
  events_.computed.clear();
  events_.evicted.clear();
}

iteration batch_scheduler::step() {
  clear_events();
  preempted_now_ = false;
  poll();
  iteration it;
  take_up_cached(it);
  const bool hold = ranks_wait() || holds_back();
  if (!exclusive_) decode(it);
  if (!hold && !preempted_now_) add_prompts(it);
  if (exclusive_ && it.prompt_tokens == 0) decode(it);
  if (it.decodes + it.prompt_tokens == 0) throw internal_error("schedule: a request fits no iteration");
  waited_ = hold ? waited_ + 1 : it.prompt_tokens > 0 ? 0 : waited_;
  peak_kv_tokens_ = std::max(peak_kv_tokens_, kv_tokens_);
  had_prompts_ = it.prompt_tokens > 0;
  prompt_iterations_ += had_prompts_ ? 1 : 0;
  if (!exclusive_ || !had_prompts_) {
    ++decoded_;
    decay_reserve();
  }
  end_requests();
  ++now_;
  return it;
}

/// The engine polls for new requests every `poll_interval` iterations, after iterations with prompts, and when
/// idle. An engine that schedules ahead has already decided on this iteration, unless nothing was there for it.
void batch_scheduler::poll() {
  const auto take = [&](std::size_t n) {
    const auto end = incoming_.begin() + static_cast<std::ptrdiff_t>(n);
    waiting_.insert(waiting_.end(), incoming_.begin(), end);
    incoming_.erase(incoming_.begin(), end);
  };
  take(std::exchange(polled_requests_, 0));
  if (decodes_ > 0 && !had_prompts_ && now_ < polled_ + set_.poll_interval) return;
  if (set_.schedule_ahead && (decodes_ > 0 || !waiting_.empty())) {
    const auto late = std::stable_partition(incoming_.begin(), incoming_.end(),
                                            [&](std::uint32_t i) { return slots_[i].expected; });
    take(static_cast<std::size_t>(late - incoming_.begin()));
    polled_requests_ = incoming_.size();
  } else {
    take(incoming_.size());
  }
  polled_ = now_;
}

/// Whether prompts wait for others to fill an iteration.
bool batch_scheduler::holds_back() {
  if (waited_ >= set_.batch_wait_iterations || decodes_ == 0 || waiting_.empty() || in_progress_ > 0) return false;
  used_.tokens.refused = used_.sequences.refused = true;  // whatever it is, it depends on both limits
  const double enough = set_.batch_wait_ratio * static_cast<double>(set_.max_num_tokens);
  double tokens = 0;
  for (auto i = waiting_.begin(); i != waiting_.end() && tokens < enough; ++i)
    tokens += static_cast<double>(slots_[*i].input);
  return tokens < enough && decodes_ + static_cast<std::int64_t>(waiting_.size()) <= set_.max_batch_size;
}

/// Whether each rank has a prompt that it may take: one that waits, and room for it in its batch.
bool batch_scheduler::each_rank_has_prompt() {
  const auto ranks = static_cast<std::int64_t>(ranks_);
  for (std::size_t r = 0; r < ranks_; ++r) {
    if (queued_[r] == 0) return false;
    const std::int64_t running = in_hand_[r] - queued_[r];
    if (running > 0 && !used_.sequences.lets((running + 1) * ranks, set_.max_batch_size)) return false;
  }
  return true;
}

/// Whether prompts wait until each rank has one. Like the engine, counts iterations since they last did not wait,
/// with or without prompts.
bool batch_scheduler::ranks_wait() {
  if (set_.rank_wait_iterations == 0 || ranks_ == 1) return false;
  const bool ready = each_rank_has_prompt() || in_progress_ > 0 || decodes_ < static_cast<std::int64_t>(ranks_);
  if (!ready && ++rank_waited_ < set_.rank_wait_iterations) return true;
  rank_waited_ = 0;
  return false;
}

void batch_scheduler::decode(iteration& it) {
  if (grows_) make_room(it);
  steps_ += decodes_;  // a decode first caches the token of its last step
  it.decodes = decodes_;
  it.context = context();
}

void add_prompt(iteration& it, std::int64_t take, std::int64_t done) {
  const auto t = static_cast<double>(take);
  it.prompt_tokens += take;
  it.prompt_pairs += t * static_cast<double>(done) + t * (t + 1) / 2;
  it.prompts += 1;
}

/// Fills the rest of the token budget with prompts in order. A rank that cannot finish its prompt takes no other.
void batch_scheduler::add_prompts(iteration& it) {
  std::int64_t room = set_.max_num_tokens - it.decodes;
  for (std::size_t at = 0; at < std::min(waiting_.size(), ranks_);) {
    if (room <= 0) {
      used_.tokens.refused = true;
      return;
    }
    const std::uint32_t i = waiting_[at];
    if (at >= in_progress_ && (slots_[i].swapped || slots_[i].delivered || !admit(i, it, room))) return;
    slot& s = slots_[i];
    prompt_fits(s.input - s.done, room);
    const std::int64_t take = std::min({room, rank_tokens_, s.input - s.done});
    add_prompt(it, take, s.done);
    room -= take;
    s.done += take;
    pending_ -= take;
    if (s.done < s.input) {
      ++at;
      continue;
    }
    it.finished_prompts += 1;
    finish_prompt(at);
  }
}

/// Whether the next prompt may be split at the token budget.
bool batch_scheduler::may_cut(const slot& s, const iteration& it) const {
  if (set_.prefill == prefill_policy::chunked) return true;
  return (exclusive_ || s.resumes) && s.input - s.done > rank_tokens_ && (it.prompt_tokens == 0 || ranks_ > 1);
}

std::int64_t batch_scheduler::tokens_of(std::int64_t steps) const {
  return std::llround(limits_.tokens_per_step * static_cast<double>(steps));
}

std::int64_t batch_scheduler::in_blocks(double tokens) const {
  const std::int64_t block = limits_.kv_block_tokens;
  return (static_cast<std::int64_t>(std::ceil(tokens)) + block - 1) / block * block;
}

/// KV tokens that must be free before admission. Without preemption they are held to the end.
std::int64_t batch_scheduler::reservation(const slot& s) const {
  const std::int64_t own =
      in_blocks(static_cast<double>(s.input) + reserve_ * static_cast<double>(s.output)) + beside(s);
  return grows_ ? own + static_cast<std::int64_t>(reserve_ * static_cast<double>(yet_to_come())) : own;
}

/// Tokens that admitted requests have yet to cache.
std::int64_t batch_scheduler::yet_to_come() const {
  return std::max<std::int64_t>(0, outputs_ - tokens_of(steps_)) + promised_;
}

/// SGLang's new_token_ratio: reserves less the longer no preemption happened; reset when nothing runs.
void batch_scheduler::decay_reserve() {
  if (!grows_ || set_.kv_reserve_decay == 0) return;
  const double whole = set_.kv_reserve, least = std::min<double>(set_.kv_reserve_min, whole);
  reserve_ = decodes_ == 0
                 ? whole
                 : std::max(least, reserve_ - (whole - least) / static_cast<double>(set_.kv_reserve_decay));
}

std::int64_t batch_scheduler::cached_tokens(names prefixes, std::int64_t input) const {
  if (!set_.prefix_cache) return 0;
  // The last token is always computed, because its output is needed.
  const auto whole = static_cast<std::size_t>((input - 1) / limits_.prefix_tokens);
  return static_cast<std::int64_t>(cache_.hits(prefixes.first(std::min(whole, prefixes.size())))) *
         limits_.prefix_tokens;
}

/// KV tokens for which a request will ask, beside those of its prompt that others hold.
std::int64_t batch_scheduler::to_await(names prefixes, std::int64_t input, std::int64_t output) const {
  const std::int64_t all = in_blocks(static_cast<double>(input) + reserve_ * static_cast<double>(output)) +
                           limits_.sequence.beside(input + output);
  const auto shared = static_cast<std::size_t>(cached_tokens(prefixes, input) / limits_.prefix_tokens);
  const auto held = static_cast<std::int64_t>(cache_.held(prefixes.first(shared)));
  return std::max<std::int64_t>(0, all - held * limits_.prefix_tokens);
}

bool batch_scheduler::has_room(names prefixes, std::int64_t input, std::int64_t output) {
  if (refuses()) return false;
  const auto waiting = static_cast<std::int64_t>(waiting_.size() + incoming_.size());
  const std::int64_t later = grows_ ? static_cast<std::int64_t>(reserve_ * static_cast<double>(yet_to_come())) : 0;
  // Each rank can have a prompt of its own, however long.
  const bool tokens = queued() < static_cast<std::int64_t>(ranks_) && waiting == queued()
                          ? true
                          : used_.tokens.lets(pending_ + 1, set_.max_num_tokens);
  const bool fits = tokens && used_.sequences.lets(decodes_ + waiting + 1, set_.max_batch_size) &&
                    may_hold(kv_tokens_ + awaited_ + to_await(prefixes, input, output) + later);
  if (!fits) no_room_at_ = changes();
  return fits;
}

/// Whether a rank takes so many tokens in an iteration that has room for `room`.
bool batch_scheduler::prompt_fits(std::int64_t tokens, std::int64_t room) {
  const std::int64_t all = set_.max_num_tokens;
  const bool in_iteration = used_.tokens.lets(all - room + tokens, all);
  return used_.rank_tokens.lets(tokens, rank_tokens_) && in_iteration;
}

bool batch_scheduler::admit(std::uint32_t i, const iteration& it, std::int64_t room) {
  slot& s = slots_[i];
  if (blocked()) return false;
  const std::int64_t shared = cached_tokens(s.prefixes, s.input);
  // Counts fetched blocks against the cache as it is now: meanwhile another request may have added some, or some
  // were evicted.
  const bool joins = s.fetched_from <= shared && s.fetched_to > shared;
  const std::int64_t hit = std::min(s.input - 1, joins ? s.fetched_to : shared);
  if (!prompt_fits(s.input - hit, room) && !may_cut(s, it)) return false;
  s.shared = static_cast<std::uint32_t>(shared / limits_.prefix_tokens);
  if (!take_memory(s, reservation(s))) {
    refused_at_ = frees_;
    return false;
  }
  ++in_progress_;
  promised_ += s.output;
  if (!s.resumes) --queued_[s.rank];
  s.done = hit;
  s.fetched_from = s.fetched_to = 0;
  awaited_ -= std::exchange(s.awaits, 0);
  pending_ -= hit;
  if (!s.resumes) events_.admitted.push_back({s.request, hit, std::max<std::int64_t>(0, hit - shared)});
  admitted_.emplace_back(i, s.life);
  return true;
}

/// Allocates the memory of a request if `asked` tokens are free. Its leading `shared` blocks are in the prefix
/// cache.
bool batch_scheduler::take_memory(slot& s, std::int64_t asked) {
  const std::int64_t prefix = std::int64_t{s.shared} * limits_.prefix_tokens;
  std::int64_t woken = 0;
  for (std::uint32_t b = 0; b < s.shared; ++b)
    if (cache_.hold(s.prefixes[b]) == prefix_cache::state::idle) woken += limits_.prefix_tokens;
  kv_tokens_ += woken;
  if (!may_hold(kv_tokens_ + std::max<std::int64_t>(0, asked - prefix))) {
    for (std::uint32_t b = s.shared; b-- > 0;) cache_.release(s.prefixes[b]);
    kv_tokens_ -= woken;
    s.shared = 0;
    return false;
  }
  s.own =
      std::max<std::int64_t>(0, (grows_ ? in_blocks(static_cast<double>(s.input)) + beside(s) : asked) - prefix);
  kv_tokens_ += s.own;
  evict_idle();
  return true;
}

void batch_scheduler::evict_idle() {
  while (cache_.idle() > 0 && !may_hold(held_with_idle())) events_.evicted.push_back(cache_.evict());
}

/// Makes computed whole blocks available to others. A shared block is held once for all its users.
void batch_scheduler::share_blocks(slot& s, std::int64_t tokens) {
  if (!set_.prefix_cache) return;
  const auto whole =
      std::min<std::size_t>(static_cast<std::size_t>(tokens / limits_.prefix_tokens), s.prefixes.size());
  if (s.shared < whole) ++frees_;
  for (; s.shared < whole; ++s.shared) {
    const auto was = cache_.hold(s.prefixes[s.shared]);
    if (was == prefix_cache::state::absent) events_.computed.push_back(s.prefixes[s.shared]);
    const std::int64_t given = std::min(s.own, limits_.prefix_tokens);
    s.own -= given;
    kv_tokens_ += (was == prefix_cache::state::held ? 0 : limits_.prefix_tokens) - given;
  }
}

void batch_scheduler::free_memory(slot& s) {
  kv_tokens_ -= s.own;
  // The end of a prompt is evicted first: its beginning is more likely to be reused.
  for (std::uint32_t b = s.shared; b-- > 0;)
    if (cache_.release(s.prefixes[b])) kv_tokens_ -= limits_.prefix_tokens;
  s.own = 0;
  s.shared = 0;
  ++s.life;
  ++frees_;
}

/// A prompt is complete, and this iteration yields its next token.
void batch_scheduler::finish_prompt(std::size_t at) {
  const std::uint32_t i = waiting_[at];
  slot& s = slots_[i];
  (s.resumes ? events_.resumed : events_.first_tokens).push_back(s.request);
  share_blocks(s, s.input);
  --in_progress_;
  promised_ -= s.output;
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  join(i, false);
}

/// Starts decoding in the next iteration, or in this one.
void batch_scheduler::join(std::uint32_t i, bool decodes_now) {
  slot& s = slots_[i];
  // An exclusive prefill iteration has no decodes.
  s.joined = decoded_ + (exclusive_ || decodes_now ? 0 : 1);
  endings_.push(
      {s.joined + static_cast<std::size_t>(decode_steps(s.output - 1, limits_.tokens_per_step)), i, s.life});
  decodes_ += 1;
  inputs_ += s.input;
  outputs_ += s.output - 1;
  if (grows_ && drafts_) await_growth(i, 0);
  if (grows_ && !drafts_) phase_of(s) += 1;
}

/// Removes a running sequence from the sums.
void batch_scheduler::stop(slot& s) {
  if (grows_) {
    if (!drafts_) phase_of(s) -= 1;
    s.own += in_blocks(static_cast<double>(cached(s))) - in_blocks(static_cast<double>(s.input));
  }
  decodes_ -= 1;
  inputs_ -= s.input;
  outputs_ -= s.output - 1;
  steps_ -= steps_of(s);
}

/// Removes requests that get their last token in this iteration.
void batch_scheduler::end_requests() {
  while (!endings_.empty() && endings_.top().at <= decoded_) {
    const ending e = endings_.top();
    endings_.pop();
    slot& s = slots_[e.slot];
    if (s.life != e.life) continue;
    stop(s);
    share_blocks(s, cached(s));
    free_memory(s);
    events_.finished.push_back(s.request);
    --in_hand_[s.rank];
    unused_.push_back(e.slot);
  }
  if (admitted_.size() > 64 + 2 * static_cast<std::size_t>(decodes_))
    std::erase_if(admitted_, [&](const auto& a) { return slots_[a.first].life != a.second; });
}

/// A sequence needs a new block when all of its blocks are full, once per block size.
std::int64_t& batch_scheduler::phase_of(const slot& s) {
  const auto block = static_cast<std::int64_t>(by_phase_.size());
  const std::int64_t phase = (s.input - static_cast<std::int64_t>(s.joined)) % block;
  return by_phase_[static_cast<std::size_t>(phase < 0 ? phase + block : phase)];
}

/// KV tokens to allocate for the next step of a sequence, in blocks.
std::int64_t batch_scheduler::next_blocks(const slot& s) const {
  const auto held = [&](std::int64_t steps) { return in_blocks(static_cast<double>(s.input + tokens_of(steps))); };
  return held(steps_of(s) + 1) - held(steps_of(s));
}

/// Registers the first step after `steps` that needs a new block.
void batch_scheduler::await_growth(std::uint32_t i, std::int64_t steps) {
  const slot& s = slots_[i];
  const std::int64_t cached = s.input + tokens_of(steps), room = in_blocks(static_cast<double>(cached)) - cached;
  std::int64_t step = steps + static_cast<std::int64_t>(static_cast<double>(room) / limits_.tokens_per_step);
  while (step > steps && tokens_of(step) - tokens_of(steps) > room) --step;
  while (tokens_of(step + 1) - tokens_of(steps) <= room) ++step;
  by_iteration_[s.joined + static_cast<std::size_t>(step)].emplace_back(i, s.life);
}

std::int64_t batch_scheduler::growth() const {
  if (drafts_) {
    std::int64_t tokens = 0;
    if (const auto due = by_iteration_.find(decoded_); due != by_iteration_.end())
      for (const auto& [i, life] : due->second)
        if (slots_[i].life == life) tokens += next_blocks(slots_[i]);
    return tokens;
  }
  return growth_after(0);
}

/// The same after so many more steps of the same sequences, at one token a step.
std::int64_t batch_scheduler::growth_after(std::int64_t steps) const {
  const auto block = static_cast<std::int64_t>(by_phase_.size());
  const std::int64_t now = (static_cast<std::int64_t>(decoded_) + steps) % block;
  return by_phase_[static_cast<std::size_t>(now == 0 ? 0 : block - now)] * block;
}

/// Frees memory for new blocks of this iteration's decodes.
void batch_scheduler::make_room(iteration& it) {
  while (!may_hold(kv_tokens_ + growth())) preempt(it);
  const std::int64_t more = growth();
  if (const auto due = by_iteration_.extract(decoded_))
    for (const auto& [i, life] : due.mapped())
      if (slots_[i].life == life) await_growth(i, steps_of(slots_[i]) + 1);
  if (more == 0) return;
  kv_tokens_ += more;
  evict_idle();
}

std::uint32_t batch_scheduler::last_admitted() {
  while (slots_[admitted_.back().first].life != admitted_.back().second) admitted_.pop_back();
  const std::uint32_t i = admitted_.back().first;
  admitted_.pop_back();
  return i;
}

/// The last admitted request releases its memory and returns to the front of the queue.
void batch_scheduler::preempt(iteration& it) {
  preempted_now_ = true;
  const std::uint32_t i = last_admitted();
  slot& s = slots_[i];
  if (in_progress_ > 0 && waiting_[in_progress_ - 1] == i) {  // a prompt in progress
    events_.recomputed_tokens += s.done;
    pending_ += s.done;
    if (!s.resumes) ++queued_[s.rank];
    s.done = 0;
    --in_progress_;
    promised_ -= s.output;
  } else {
    events_.preempted.push_back(s.request);
    stop(s);
    const std::int64_t tokens = cached(s);
    const bool swap =
        set_.preemption == preemption_policy::swap && swapped_out_ + tokens <= limits_.swap_capacity_tokens;
    s.output -= tokens - s.input + 1;
    s.input = tokens + (swap ? 0 : 1);  // recomputation also caches the last token
    s.resumes = true;
    s.swapped = swap;
    if (swap) {
      swapped_out_ += tokens;
      it.swapped_tokens += tokens;
    } else {
      events_.recomputed_tokens += tokens;
      s.done = 0;
      pending_ += s.input;
    }
    waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(in_progress_), i);
  }
  free_memory(s);
  if (set_.kv_reserve_decay > 0 && decodes_ > 0) {  // what running requests have needed, and 20 tokens each
    constexpr double ahead = 20;
    const double made = static_cast<double>(tokens_of(steps_)) + ahead * static_cast<double>(decodes_);
    reserve_ = std::min(1.0, made / std::max(1.0, static_cast<double>(outputs_)));
  }
}

/// Resumes sequences whose cache is in CPU memory or has arrived from another worker, as soon as there is room.
void batch_scheduler::take_up_cached(iteration& it) {
  while (!waiting_.empty()) {
    const std::uint32_t i = waiting_.front();
    slot& s = slots_[i];
    if (!s.swapped && !s.delivered) return;
    if (blocked()) return;
    if (!take_memory(s, reservation(s))) {
      refused_at_ = frees_;
      return;
    }
    waiting_.pop_front();
    if (s.swapped) {
      swapped_out_ -= s.input;
      it.swapped_tokens += s.input;
      s.output += 1;  // counts as if the copy yielded its last token
    }
    (s.swapped ? events_.returned : events_.taken_over).push_back(s.request);
    s.swapped = s.delivered = false;
    admitted_.emplace_back(i, s.life);
    join(i, true);
  }
}

}  // namespace nvlsim
