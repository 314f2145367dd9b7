// Popularity of experts: a gamma distribution with variance `skew` relative to the square of its mean. With 0 all
// experts are equally popular. [docs/models-and-assumptions.md#inference-experts]
#pragma once

namespace nvlsim {

/// Share of the experts that a batch of `tokens` uses if each token uses a share `mean`: 1 - (1 - mean)^tokens if
/// all experts are equally popular, less otherwise.
double touched_share(double mean, double skew, double tokens);

/// Tokens of the busiest rank over the mean, if `ranks` ranks share `experts` evenly.
double busiest_share(double ranks, double skew, double experts);

}  // namespace nvlsim
