// Power of the racks of a training job over a step. [docs/facility.md#waveform]
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nvlsim/facility/facility.hpp"
#include "nvlsim/facility/waveform.hpp"
#include "nvlsim/layout/layout.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Pieces of a wave. Power supplies bridge times shorter than a piece of a step of half a minute.
inline constexpr std::size_t wave_pieces = 2048;

/// Power of the mean GPU of each pipeline stage over a step. Waiting GPUs draw `idle`.
std::vector<power_wave> waves_of_stages(const plan& planned, const timeline& times, watts idle,
                                        std::int64_t stages);

/// Racks with the same ranks in them.
struct rack_kind {
  std::vector<std::int64_t> gpus;  ///< by stage
  std::int64_t racks = 0;
  std::int64_t busy() const;  ///< GPUs of the job
};
/// The racks of a job, those of one content together. Takes time linear in the GPUs.
std::vector<rack_kind> kinds_of_racks(const parallelism& par, const placement& place);

/// Power at the supplies of a rack whose GPUs draw `gpus` in all: CPUs at idle, trays and switches, supply losses.
watts rack_draw(const platform& p, watts gpus);

/// Power over one period at the supplies of racks, before and after smoothing, and at the site's meter.
struct site_power {
  power_wave rack_load;  ///< of the rack with the highest peak, as it asks
  power_wave rack_draw;  ///< the same rack, smoothed
  power_wave load;       ///< all racks, as they ask
  power_wave draw;       ///< all racks, smoothed
  power_wave meter;      ///< `draw` and the mean of what cooling and supply take
  watts idle_rack;       ///< a rack without work
  std::int64_t busy_racks = 0;
};
/// Of a job on a platform whose other GPUs are idle.
site_power power_of_site(const platform& p, const facility_spec& f, const std::vector<power_wave>& stages,
                         const std::vector<rack_kind>& kinds);

/// The waves, each times its factor, added up. All have one period.
power_wave sum_of(const std::vector<std::pair<double, power_wave>>& parts);

}  // namespace nvlsim
