// Power over time of something that repeats, such as the racks of a training job, and what smooths it.
// [docs/facility.md#waveform]
#pragma once

#include <cstddef>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// A stretch of time in which power changes evenly.
struct wave_piece {
  seconds time;
  watts from, to;  ///< at its start and its end
};

/// One period of power that repeats. Pieces follow one another; steps between them are instantaneous.
struct power_wave {
  std::vector<wave_piece> pieces;

  seconds period() const;
  joules energy() const;  ///< of a period
  watts mean() const;     ///< of no period: zero
  watts peak() const;
  watts floor() const;
  watts swing() const { return peak() - floor(); }
};

/// A change of power at one time of the period.
struct power_change {
  double at_s = 0, change_W = 0;
};

/// The wave that starts with `base` and takes `changes`, in any order. Requires a period above zero and changes
/// within it. Changes at one time become one.
power_wave wave_of(std::vector<power_change> changes, watts base, seconds period);

/// `factor` times the wave, plus `added`.
power_wave scaled(const power_wave& w, double factor, watts added);

/// A wave of at most `pieces` constant pieces, each the mean of its time; itself if it has no more and they are
/// constant. Keeps the energy. Peaks shorter than period / `pieces` lose height.
power_wave condensed(const power_wave& w, std::size_t pieces);

/// What a supply with an ideal energy storage of this size draws for the load `w`: of all patterns that repeat,
/// the one whose peak is lowest, whose floor is highest and whose variance is smallest at once. The energy of a
/// period stays. Requires constant pieces. Takes time linear in the pieces. [docs/facility.md#storage]
power_wave with_storage(const power_wave& w, joules storage);

/// The least power that is never below `w` and never rises or falls faster than given (watts a second; zero: no
/// limit): power is burnt before a rise and after a fall. Requires constant pieces. [docs/facility.md#burning]
power_wave with_ramp_limits(const power_wave& w, double rise_W_per_s, double fall_W_per_s);

/// Burns what is missing to `least`.
power_wave with_floor(const power_wave& w, watts least);

/// The root mean square of the part of the wave that oscillates at `low_hz` to `high_hz`, both included.
/// [docs/facility.md#spectrum]
watts oscillation(const power_wave& w, double low_hz, double high_hz);

/// The standard deviation of the power over a period.
watts deviation(const power_wave& w);

/// The largest difference of power between two times at most `window` apart.
watts largest_change_within(const power_wave& w, seconds window);

/// What happens when a load that draws `before` stops and then draws `after`.
struct stop_effect {
  watts drop;
  seconds ridden;        ///< how long the storage takes up the whole drop
  seconds ramp;          ///< until the power is down to the load at the ramp limit; zero without a limit
  joules stored, burnt;  ///< of the power of the ramp above the load
};
/// `storage` is what the storage can take up, `fall_W_per_s` the ramp limit (zero: none).
stop_effect effect_of_stop(watts before, watts after, joules storage, double fall_W_per_s);

}  // namespace nvlsim
