// The free parameters of each family of collectives, as a fit sees them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

struct collective_knob {
  std::string pointer;       ///< below /collectives
  std::string unit;          ///< "" for a plain number
  double prior = 1;          ///< where a fit begins and what holds it, in that unit; never what a fit gave before
  double low = 0, high = 1;  ///< in that unit
  double prior_width = 1;    ///< of the logarithm
  std::function<double(const collective_profile&)> get;
  std::function<void(collective_profile&, double)> set;
};

/// Those of "domain/nvlink5/all_reduce", "fabric/efa-3200/all_gather" and so on (`collective_row::family`), as
/// many as the profile has.
std::vector<collective_knob> collective_knobs_of(const std::string& family, const collective_profile& profile);

}  // namespace nvlsim
