// Popularity of experts: a gamma distribution with variance `skew` relative to the square of its mean. With 0 all
// experts are equally popular. [docs/models-and-assumptions.md#inference-experts]
#pragma once

namespace nvlsim {

/// How tokens choose experts, and how ranks share these evenly.
struct expert_spread {
  double experts = 1;  ///< of a layer
  double top_k = 1;    ///< that a token uses
  double ranks = 1;
  double skew = 0;
};

/// Expected largest of `n` normal numbers, in standard deviations above their mean; of 128 beyond that.
double largest_of(double n);

/// Share of the experts that a batch of `tokens` uses if each token uses a share `mean`: 1 - (1 - mean)^tokens if
/// all experts are equally popular, less otherwise.
double touched_share(double mean, double skew, double tokens);

/// Tokens of the busiest rank over the mean of all ranks, in a batch of `tokens`: popularity differs from rank to
/// rank, and a few tokens are a small sample of it. At most what one rank can get. Infinite `tokens` leave the
/// spread of popularity.
double busiest_share(const expert_spread& s, double tokens);

/// Experts that a batch of `tokens` uses on the rank where it uses most of them.
double max_touched(const expert_spread& s, double tokens);

}  // namespace nvlsim
