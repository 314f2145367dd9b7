// Log-normal lengths within bounds, by what they are after the bounds have cut them.
#pragma once

#include "nvlsim/layers/token_lengths.hpp"

namespace nvlsim {

/// Mean of what is drawn from log-normal lengths, in tokens: those beyond a bound have the length of the bound.
/// Other shapes give their mean before the cut.
double sampled_mean(const token_lengths& l);

/// Log-normal lengths within [min, max] whose draws have this mean and standard deviation, all in tokens. Where no
/// lengths that a scenario may have spread as much, the deviation is the largest that they have; the mean is kept.
/// Requires 1 <= min < mean < max.
token_lengths cut_lognormal(double mean, double deviation, std::int64_t min, std::int64_t max);

}  // namespace nvlsim
