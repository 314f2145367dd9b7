// Order statistics of a few numbers, and of normals.
#pragma once

#include <vector>

namespace nvlsim {

/// The median: the middle value, or the mean of the two middle values. Requires at least one value.
double median_of(std::vector<double> values);

/// The `share` quantile by nearest rank, which is always one of the values. Requires at least one value.
double share_below(std::vector<double> values, double share);

/// The share of a standard normal below z.
double normal_below(double z);
/// The z below which a standard normal lies with probability `u`, more than 0 and less than 1.
double normal_quantile(double u);
/// Mean of the largest of `n` standard normals, one or more, by Blom's approximation (1958): 1 % from ten on.
double largest_normal(double n);

}  // namespace nvlsim
