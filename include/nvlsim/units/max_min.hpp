// Fair shares of one thing that several use at once.
#pragma once

#include <vector>

namespace nvlsim {

/// What each of those that can use `most` gets of `together` by max-min: who can use least is served first, and
/// what he leaves goes to the others. In the order of `most`.
std::vector<double> max_min_shares(const std::vector<double>& most, double together);

}  // namespace nvlsim
