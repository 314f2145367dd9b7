// Experts that are not equally popular: their popularity has a gamma distribution of variance `skew`, relative to
// the square of its mean; 0 where all are alike. [docs/models-and-assumptions.md#inference-experts]
#pragma once

namespace nvlsim {

/// Share of the experts that a batch of `tokens` touches, of which each token touches a share `mean`:
/// 1 - (1 - mean)^tokens where all are alike, fewer where not.
double touched_share(double mean, double skew, double tokens);

/// Tokens of the busiest of `ranks` that share out `experts` evenly, over the mean.
double busiest_share(double ranks, double skew, double experts);

}  // namespace nvlsim
