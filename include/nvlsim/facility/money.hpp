// What a GPU costs an hour by the way it is bought, and what useful work then costs. [docs/facility.md#money]
#pragma once

#include <optional>

#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

inline constexpr double hours_a_year = 8766;  // 365.25 days

enum class purchase { on_demand, reserved, spot, owned };

/// GPUs that are bought.
struct ownership {
  constant<dollars> capital_per_gpu;     ///< with its share of racks, network and building
  constant<double> years;                ///< of use
  constant<double> residual = 0;         ///< share of the capital that is left at the end
  constant<double> interest = 0;         ///< a year, on the capital
  constant<dollars> staff_per_gpu_year;  ///< people, space, spare parts, insurance
  constant<double> usd_per_kWh = 0;      ///< at the site's meter
};
/// Capital as equal payments over the years of use (an annuity; straight line without interest), and staff. Power
/// comes on top: it depends on the work.
dollar_rate fixed_cost_per_gpu(const ownership& o);

/// How long it takes until machines that were taken are there again, if nobody says.
inline const seconds usual_return = seconds::from_base(3600);

/// Machines that the seller may take back.
struct spot_market {
  constant<seconds> eviction_after;  ///< of one machine, on average; each takes the job down
  constant<int> gpus_per_machine = 1;
  constant<seconds> notice;   ///< before the machine goes
  constant<seconds> save;     ///< time to write a checkpoint
  constant<seconds> restart;  ///< until the job computes again, loading included
  constant<seconds> checkpoint_interval;
  /// Of months and fleets, where evictions are played: mean time until what was taken is there again (absent:
  /// `usual_return`), and whether the seller takes a whole rack at a time.
  std::optional<constant<seconds>> returns_after;
  bool takes_rack = false;
};
/// Useful share of the time of a job on `gpus` of them: Daly's exact form, where evictions come at random, also
/// during a restart. A checkpoint is written at each interval, or on notice where there is time for it, and then
/// nothing is computed twice.
double useful_share(const spot_market& s, double gpus);

/// Useful share of time with a checkpoint of time `save` after each `interval` of work, interruptions `between`
/// apart on average (exponential, on the wall clock) and `restart` after each: Daly 2006, exact.
double daly_useful_share(seconds between, seconds interval, seconds save, seconds restart);

/// How GPUs are paid. Nothing here has a default price.
struct payment {
  purchase way = purchase::on_demand;
  std::optional<constant<dollar_rate>> gpu_price;  ///< on demand; of spot and reserved before the discount
  constant<double> discount = 0;                   ///< share off `gpu_price`
  std::optional<ownership> owned;
  std::optional<spot_market> spot;
  constant<double> goodput = 1;  ///< useful share of the paid time, apart from evictions
  bool plays_evictions = false;  ///< they are in the work that is paid for
};

/// Cost of time on GPUs.
struct bill {
  dollars fixed;                                              ///< rent, or capital and staff
  dollars power;                                              ///< of owners
  double useful = 1;                                          ///< share of the paid time: goodput and evictions
  dollars paid() const { return fixed + power; }              ///< for the time as it passes
  dollars total() const { return (fixed + power) / useful; }  ///< of so much useful work
};
/// For `time` on `gpus` GPUs, those that were taken back not counted, that takes `at_meter` of energy. Requires a
/// price, or owned GPUs, and a market for spot.
bill bill_for(const payment& p, double gpus, seconds time, joules at_meter);

}  // namespace nvlsim
