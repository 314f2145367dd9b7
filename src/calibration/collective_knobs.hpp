// The free parameters of each collective family, for fits.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

struct collective_knob {
  std::string pointer;                ///< relative to /collectives
  std::string unit;                   ///< "" for a plain number
  double prior = 1;                   ///< prior and start of a fit, in `unit`; never a previous fit's value
  double low = 0, high = 1;           ///< bounds, in `unit`
  double prior_width = 1;             ///< in log
  std::optional<double> other_start;  ///< a second start of the search, where there are several optima
  std::function<double(const collective_profile&)> get;
  std::function<void(collective_profile&, double)> set;
};

/// Parameters of a family (`collective_row::family`) such as "domain/nvlink5/all_reduce", limited to those the
/// profile has.
std::vector<collective_knob> collective_knobs_of(const std::string& family, const collective_profile& profile);

}  // namespace nvlsim
