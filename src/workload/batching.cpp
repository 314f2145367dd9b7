#include <algorithm>
#include <cmath>
#include <utility>

#include "nvlsim/diagnostics.hpp"
#include "nvlsim/inference.hpp"

namespace nvlsim {
namespace {

constexpr std::int32_t nobody = -1;

/// Sums over the running sequences, so that an iteration costs its changes and not its batch.
/// [docs/models-and-assumptions.md#inference-scheduler]
class scheduler {
 public:
  scheduler(const request_lengths& lengths, const schedule_limits& limits)
      : set_(limits.settings), limits_(limits), exclusive_(set_.prefill == prefill_policy::exclusive) {
    set_.max_batch_size = std::min(set_.max_batch_size, set_.max_num_tokens);
    out_.requests.reserve(lengths.size());
    for (const auto& [input, output] : lengths) out_.requests.push_back({.input = input, .output = output});
    const auto clients = static_cast<std::size_t>(limits.concurrency);
    arrived_ = seen_ = clients > 0 ? std::min(clients, lengths.size()) : lengths.size();
    next_to_end_.assign(lengths.size(), nobody);
  }

  batching_schedule run() && {
    while (decodes_ > 0 || next_ < out_.requests.size()) step();
    return std::move(out_);
  }

 private:
  std::int32_t now() const { return static_cast<std::int32_t>(out_.iterations.size()); }

  void step() {
    poll();
    const bool hold = holds_back();
    iteration it;
    if (!exclusive_) decode(it);
    if (!hold) add_prompts(it);
    if (exclusive_ && it.prompt_tokens == 0) decode(it);
    if (it.decodes + it.prompt_tokens == 0) throw internal_error("schedule: a request fits no iteration");
    waited_ = hold ? waited_ + 1 : it.prompt_tokens > 0 ? 0 : waited_;
    out_.peak_kv_tokens = std::max(out_.peak_kv_tokens, kv_tokens_);
    if (!exclusive_ || it.prompt_tokens == 0) ++decoded_;
    end_requests();
    out_.iterations.push_back(it);
  }

  void decode(iteration& it) {
    steps_ += decodes_;  // each decode first caches what its last step gave
    it.decodes = decodes_;
    it.context = inputs_ + std::llround(limits_.tokens_per_step * static_cast<double>(steps_));
  }

  /// New requests are seen at every `poll_interval`-th iteration, and at once by an idle engine.
  void poll() {
    if (seen_ == arrived_ || (decodes_ > 0 && now() < polled_ + set_.poll_interval)) return;
    seen_ = arrived_;
    polled_ = now();
  }

  /// Whether prompts wait for others to fill an iteration with.
  bool holds_back() const {
    if (waited_ >= set_.batch_wait_iterations || decodes_ == 0 || next_ >= seen_ || next_admitted_) return false;
    const double enough = set_.batch_wait_ratio * static_cast<double>(set_.max_num_tokens);
    double tokens = 0;
    for (std::size_t i = next_; i < seen_ && tokens < enough; ++i) tokens += static_cast<double>(out_.requests[i].input);
    return tokens < enough && decodes_ + static_cast<std::int64_t>(seen_ - next_) <= set_.max_batch_size;
  }

  /// KV tokens a request holds from admission to its last token, in whole blocks.
  std::int64_t reservation(const request_progress& r) const {
    const double tokens = static_cast<double>(r.input) + set_.kv_reserve * static_cast<double>(r.output);
    const std::int64_t block = limits_.kv_block_tokens;
    return (static_cast<std::int64_t>(std::ceil(tokens)) + block - 1) / block * block;
  }

  std::int64_t steps_of(const request_progress& r) const { return decode_steps(r.output - 1, limits_.tokens_per_step); }

  /// Whether the next prompt may be cut at the token budget.
  bool may_cut(const request_progress& r, const iteration& it) const {
    if (set_.prefill == prefill_policy::chunked) return true;
    return exclusive_ && r.input > set_.max_num_tokens && it.prompt_tokens == 0;
  }

  bool admit(request_progress& r, const iteration& it, std::int64_t room) {
    if (next_admitted_) return true;
    const std::int64_t need = reservation(r);
    if (decodes_ >= set_.max_batch_size || kv_tokens_ + need > limits_.kv_capacity_tokens) return false;
    if (r.input > room && !may_cut(r, it)) return false;
    next_admitted_ = true;
    kv_tokens_ += need;
    r.admitted = now();
    return true;
  }

  /// Fills what the decodes leave of the token budget with prompts, in order.
  void add_prompts(iteration& it) {
    std::int64_t room = set_.max_num_tokens - it.decodes;
    while (room > 0 && next_ < seen_) {
      request_progress& r = out_.requests[next_];
      if (!admit(r, it, room)) return;
      const std::int64_t take = std::min(room, r.input - next_done_);
      const auto t = static_cast<double>(take);
      it.prompt_tokens += take;
      it.prompt_pairs += t * static_cast<double>(next_done_) + t * (t + 1) / 2;
      it.prompts += 1;
      room -= take;
      next_done_ += take;
      if (next_done_ < r.input) return;
      it.finished_prompts += 1;
      finish_prompt(r);
    }
  }

  /// The prompt of `r` is cached and its first token comes out of this iteration.
  void finish_prompt(request_progress& r) {
    r.first_token = now();
    // An iteration of prompts alone decodes for nobody.
    const std::size_t end = decoded_ + (exclusive_ ? 0 : 1) + static_cast<std::size_t>(steps_of(r));
    if (ends_.size() <= end) ends_.resize(end + 1, nobody);
    next_to_end_[next_] = std::exchange(ends_[end], static_cast<std::int32_t>(next_));
    decodes_ += 1;
    inputs_ += r.input;
    next_ += 1;
    next_done_ = 0;
    next_admitted_ = false;
  }

  /// Requests whose last token this iteration gives leave, and their clients send the next ones.
  void end_requests() {
    if (decoded_ >= ends_.size()) return;
    for (std::int32_t i = std::exchange(ends_[decoded_], nobody); i != nobody;
         i = next_to_end_[static_cast<std::size_t>(i)]) {
      request_progress& r = out_.requests[static_cast<std::size_t>(i)];
      r.last_token = now();
      decodes_ -= 1;
      inputs_ -= r.input;
      steps_ -= steps_of(r);
      kv_tokens_ -= reservation(r);
      if (arrived_ < out_.requests.size()) out_.requests[arrived_++].arrived = now() + 1;
    }
  }

  engine_settings set_;
  const schedule_limits& limits_;
  bool exclusive_;
  batching_schedule out_;
  std::int64_t decodes_ = 0;    ///< sequences that have their first token
  std::int64_t inputs_ = 0, steps_ = 0;  ///< prompt tokens and decode steps so far over those
  std::int64_t kv_tokens_ = 0;  ///< reserved, prompts in work included
  std::size_t next_ = 0;        ///< first request whose prompt is not finished
  std::int64_t next_done_ = 0;  ///< its prompt tokens already cached
  bool next_admitted_ = false;
  std::size_t arrived_ = 0, seen_ = 0;  ///< requests sent; those the engine has looked at
  std::int64_t polled_ = 0, waited_ = 0;
  std::size_t decoded_ = 0;                ///< iterations in which sequences could decode
  std::vector<std::int32_t> ends_;         ///< by those iterations: first of the requests that end with it
  std::vector<std::int32_t> next_to_end_;  ///< by request: another one that ends at the same time
};

}  // namespace

std::int64_t decode_steps(std::int64_t tokens, double tokens_per_step) {
  return tokens == 0 ? 0 : std::max<std::int64_t>(1, std::llround(static_cast<double>(tokens) / tokens_per_step));
}

batching_schedule schedule_requests(const request_lengths& lengths, const schedule_limits& limits) {
  return scheduler(lengths, limits).run();
}

batching_schedule schedule_offline(const request_lengths& lengths, std::int64_t max_num_tokens,
                                   std::int64_t max_batch_size, prefill_policy prefill,
                                   std::int64_t kv_capacity_tokens, int kv_block_tokens) {
  schedule_limits l;
  l.settings.prefill = prefill;
  l.settings.max_num_tokens = max_num_tokens;
  l.settings.max_batch_size = max_batch_size;
  l.kv_capacity_tokens = kv_capacity_tokens;
  l.kv_block_tokens = kv_block_tokens;
  return schedule_requests(lengths, l);
}

}  // namespace nvlsim
