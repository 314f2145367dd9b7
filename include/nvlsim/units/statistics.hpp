// Order statistics of a few numbers.
#pragma once

#include <vector>

namespace nvlsim {

/// The median: the middle value, or the mean of the two middle values. Requires at least one value.
double median_of(std::vector<double> values);

/// The `share` quantile by nearest rank, which is always one of the values. Requires at least one value.
double share_below(std::vector<double> values, double share);

}  // namespace nvlsim
