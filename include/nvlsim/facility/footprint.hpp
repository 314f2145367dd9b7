// Energy at the site's meter, water and carbon. [docs/facility.md#footprint]
#pragma once

#include <array>
#include <optional>

#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

inline constexpr int hours_a_day = 24;

/// Carbon of the grid by hour of the day.
struct grid_carbon {
  std::array<constant<double>, hours_a_day> g_per_kWh{};  ///< CO2 equivalent

  double mean() const;
  /// The mean over a run that starts at hour `start_h` of a day and lasts `time`. At time zero: that hour's.
  double mean_over(double start_h, seconds time) const;
  /// The full hour at which a run of `time` has the least carbon; the first of several.
  int best_start(seconds time) const;
};

/// What a site adds to the energy of its racks.
struct site_overheads {
  std::optional<constant<double>> pue;            ///< energy at the meter over that at the racks' supplies
  std::optional<constant<double>> wue_L_per_kWh;  ///< water per energy at the racks' supplies
  std::optional<grid_carbon> carbon;
  constant<double> start_h = 0;  ///< hour of the day at which the run starts
};

double kWh(joules e);

/// Nothing stands for what the site does not say.
struct footprint {
  std::optional<joules> at_meter;
  std::optional<double> water_L, carbon_g;
};
/// Of `racks` joules drawn by racks evenly over `time`. Carbon needs the PUE.
footprint footprint_of(const site_overheads& s, joules racks, seconds time);
/// Of what racks draw in each hour of the day, counted from the start of a run; days are summed.
footprint footprint_of(const site_overheads& s, const std::array<joules, hours_a_day>& racks);

}  // namespace nvlsim
