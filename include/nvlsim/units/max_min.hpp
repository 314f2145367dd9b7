// Fair shares of one resource with several users.
#pragma once

#include <vector>

namespace nvlsim {

/// Max-min fair shares of `together` for demands `most`, in the same order. The smallest demand is served first,
/// and the others share what it leaves.
std::vector<double> max_min_shares(const std::vector<double>& most, double together);

}  // namespace nvlsim
