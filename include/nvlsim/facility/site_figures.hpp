// What a site makes of a piece of work: a step, or a million tokens. [docs/facility.md#results]
#pragma once

#include <cstdint>
#include <optional>

#include "nvlsim/facility/facility.hpp"
#include "nvlsim/facility/rack_power.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// The band of frequencies that turbines and transformers are sensitive to.
inline constexpr double low_oscillation_hz = 0.1, high_oscillation_hz = 20;

/// Power of a step that repeats.
struct power_figures {
  watts rack_peak;                    ///< at the supplies of the rack that peaks highest, smoothed
  watts site_peak, site_swing;        ///< at the meter
  watts change_in_a_second;           ///< largest, at the meter
  watts oscillation;                  ///< root mean square between the two frequencies, at the meter
  double burnt_share = 0;             ///< of the energy of all racks
  std::optional<double> slowdown;     ///< by a cap: time with it over time without, less one
  std::optional<std::int64_t> racks;  ///< that the site's budget holds, if they draw like these
};
power_figures figures_of(const platform& p, const facility_spec& f, const site_power& w);

/// Nothing stands for what the site does not say.
struct site_figures {
  std::optional<power_figures> power;
  footprint took;
  std::optional<dollars> bill;  ///< of the work, if it was useful: the paid time over its useful share
  std::optional<dollars> paid;  ///< for the time as it passed, whatever came of it
};

/// A piece of work.
struct site_work {
  joules racks;  ///< at the supplies of the racks, for the job's share of them
  double gpus = 0;
  seconds time;
};
/// With `power`, what is burnt comes on top.
site_figures figures_of(const facility_spec& f, const site_work& w, const std::optional<power_figures>& power);

}  // namespace nvlsim
