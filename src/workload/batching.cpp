#include <algorithm>

#include "nvlsim/diagnostics.hpp"
#include "nvlsim/inference.hpp"

namespace nvlsim {
namespace {

using request_lengths = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// [docs/models-and-assumptions.md#inference-scheduler]
struct batch_limits {
  std::int64_t tokens = 0, sequences = 0, kv_tokens = 0, kv_block = 1;
  bool chunked = true;

  /// KV tokens a request holds from admission to its last token, in whole blocks.
  std::int64_t reservation(std::int64_t input, std::int64_t output) const {
    return (input + output + kv_block - 1) / kv_block * kv_block;
  }
};

/// What the sequences that end with one iteration give back.
struct released {
  std::int64_t sequences = 0, context = 0, kv_tokens = 0;
};

/// Sums over the running sequences, so that an iteration costs its changes and not its batch.
struct batch {
  std::int64_t decodes = 0;    ///< sequences that have their first token
  std::int64_t context = 0;    ///< cached tokens over those
  std::int64_t kv_tokens = 0;  ///< reserved, prompts in work included
  std::size_t next = 0;        ///< first request whose prompt is not finished
  std::int64_t next_done = 0;  ///< its prompt tokens already cached
  bool next_admitted = false;
  std::vector<released> ends;  ///< by iteration
};

bool admit(batch& b, request_progress& r, const batch_limits& l, std::int64_t room, std::int32_t now) {
  if (b.next_admitted) return true;
  const std::int64_t need = l.reservation(r.input, r.output);
  if (b.decodes >= l.sequences || b.kv_tokens + need > l.kv_tokens) return false;
  if (!l.chunked && r.input > room) return false;
  b.next_admitted = true;
  b.kv_tokens += need;
  r.admitted = now;
  return true;
}

/// The prompt of `r` is cached and its first token comes out of iteration `now`.
void finish_prompt(batch& b, request_progress& r, const batch_limits& l, std::int32_t now) {
  r.first_token = now;
  r.last_token = now + static_cast<std::int32_t>(r.output - 1);
  const auto last = static_cast<std::size_t>(r.last_token);
  if (b.ends.size() <= last) b.ends.resize(last + 1);
  b.ends[last].sequences += 1;
  b.ends[last].context += r.input + r.output - 1;
  b.ends[last].kv_tokens += l.reservation(r.input, r.output);
  b.decodes += 1;
  b.context += r.input;
  b.next += 1;
  b.next_done = 0;
  b.next_admitted = false;
}

/// Fills what the decodes leave of the token budget with prompts, in order.
void add_prompts(batch& b, iteration& it, std::vector<request_progress>& requests, const batch_limits& l,
                 std::int32_t now) {
  std::int64_t room = l.tokens - it.decodes;
  while (room > 0 && b.next < requests.size()) {
    request_progress& r = requests[b.next];
    if (!admit(b, r, l, room, now)) return;
    const std::int64_t take = std::min(room, r.input - b.next_done);
    const auto t = static_cast<double>(take);
    it.prompt_tokens += take;
    it.prompt_pairs += t * static_cast<double>(b.next_done) + t * (t + 1) / 2;
    it.prompts += 1;
    room -= take;
    b.next_done += take;
    if (b.next_done < r.input) return;
    it.finished_prompts += 1;
    finish_prompt(b, r, l, now);
  }
}

void release(batch& b, std::size_t now) {
  if (now >= b.ends.size()) return;
  b.decodes -= b.ends[now].sequences;
  b.context -= b.ends[now].context;
  b.kv_tokens -= b.ends[now].kv_tokens;
}

}  // namespace

batching_schedule schedule_offline(const request_lengths& lengths, std::int64_t max_num_tokens,
                                   std::int64_t max_batch_size, bool chunked_prefill,
                                   std::int64_t kv_capacity_tokens, int kv_block_tokens) {
  const batch_limits l{max_num_tokens, std::min(max_batch_size, max_num_tokens), kv_capacity_tokens,
                       kv_block_tokens, chunked_prefill};
  batching_schedule s;
  s.requests.reserve(lengths.size());
  for (const auto& [input, output] : lengths) s.requests.push_back({.input = input, .output = output});

  batch b;
  while (b.decodes > 0 || b.next < s.requests.size()) {
    const std::size_t now = s.iterations.size();
    b.context += b.decodes;  // each decode first caches the token it continues from
    iteration it{.decodes = b.decodes, .context = b.context};
    add_prompts(b, it, s.requests, l, static_cast<std::int32_t>(now));
    if (it.decodes + it.prompt_tokens == 0) throw internal_error("schedule_offline: a request fits no iteration");
    s.peak_kv_tokens = std::max(s.peak_kv_tokens, b.kv_tokens);
    s.iterations.push_back(it);
    release(b, now);
  }
  return s;
}

}  // namespace nvlsim
