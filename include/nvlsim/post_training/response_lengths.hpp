// Lengths of generated responses: a long tail, cut at a limit. [docs/post-training.md#lengths]
#pragma once

#include <cstdint>
#include <vector>

namespace nvlsim {

/// Log-normal lengths of responses, cut at a limit. Published figures are means after the cut.
struct response_lengths {
  double mean = 0;        ///< tokens, after the cut
  std::int64_t max = 0;   ///< tokens; longer responses end there
  double tail = 10;       ///< 99th percentile over the median, before the cut; 1: equal lengths
  double together = 0.5;  ///< share of the variance of the logarithm that samples of one prompt share
  friend bool operator==(const response_lengths&, const response_lengths&) = default;
};

/// Standard deviation of the logarithm: ln(tail) / 2.326, the 99 % quantile of a standard normal.
double log_deviation(const response_lengths& l);
/// Mean length in tokens after a cut at `max`, for this median and deviation before it.
double mean_after_cut(double median, double deviation, double max);
/// The median before the cut that gives the mean `l.mean` after it. Requires 0 < mean < max, or a tail of 1.
double median_before_cut(const response_lengths& l);
/// Share of responses that reach the limit.
double share_cut(const response_lengths& l);

/// Draws lengths of `prompts` x `samples` responses, prompt by prompt, each at least one token. Equal seeds give
/// equal lengths.
std::vector<std::int64_t> sample_responses(const response_lengths& l, std::int64_t prompts, std::int64_t samples,
                                           std::uint64_t seed);

}  // namespace nvlsim
