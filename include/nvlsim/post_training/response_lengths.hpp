// Lengths of generated responses: a long tail that a limit cuts. [docs/post-training.md#lengths]
#pragma once

#include <cstdint>
#include <vector>

namespace nvlsim {

/// Log-normal lengths, cut at a limit, as rollouts have them: what is published of them is the mean after the cut.
struct response_lengths {
  double mean = 0;        ///< tokens, after the cut
  std::int64_t max = 0;   ///< tokens; a response that reaches it ends there
  double tail = 10;       ///< 99th percentile over the median, before the cut; 1: all responses are equal
  double together = 0.5;  ///< share of the variance (of the logarithm) that samples of one prompt have in common
  friend bool operator==(const response_lengths&, const response_lengths&) = default;
};

/// Standard deviation of the logarithm: ln(tail) / 2.326, the 99 % quantile of a standard normal.
double log_deviation(const response_lengths& l);
/// Mean of lengths with that median and deviation, cut at `max`, in tokens.
double mean_after_cut(double median, double deviation, double max);
/// The median before the cut for which the mean after it is `l.mean`. Requires 0 < mean < max, or a tail of 1.
double median_before_cut(const response_lengths& l);
/// Share of responses that reach the limit.
double share_cut(const response_lengths& l);

/// Lengths of `prompts` x `samples` responses, prompt by prompt; at least one token each. Draws with equal seeds
/// are equal.
std::vector<std::int64_t> draw_responses(const response_lengths& l, std::int64_t prompts, std::int64_t samples,
                                         std::uint64_t seed);

}  // namespace nvlsim
