// Order statistics of a few numbers.
#pragma once

#include <vector>

namespace nvlsim {

/// The middle value, or the mean of the two in the middle. Requires a value.
double median_of(std::vector<double> values);

/// The smallest of the values that a share of them does not exceed (nearest rank). Requires a value.
double share_below(std::vector<double> values, double share);

}  // namespace nvlsim
