// Closed forms of time lost to failures: what people estimate with, and what a simulation is checked against.
#pragma once

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// A job that saves its state from time to time and restarts from it after a failure.
struct restart_costs {
  seconds mttf;     ///< mean time between failures of the job, on the clock of the wall; more than 0
  seconds save;     ///< that a save stops it for
  seconds restart;  ///< from a failure to the next step; fails as often as a step
};

/// Mean time to failure of a job whose `units` fail independently, `per_unit_day` times a day each.
seconds job_mttf(double units, double per_unit_day);

/// Interval between saves of Young (1974), sqrt(2 save mttf).
seconds young_interval(const restart_costs& c);
/// First order of Daly (2006), Young's less the time of a save; never negative.
seconds daly_interval(const restart_costs& c);
/// The interval that is best by Daly's exact form; 0 if a save takes no time.
seconds best_interval(const restart_costs& c);

/// Share of the wall time that is useful, by Daly's exact form for exponential failures:
/// `interval / (mttf e^(restart/mttf) (e^((interval+save)/mttf) - 1))`. Saves, restarts and redone work may fail.
double daly_useful_share(const restart_costs& c, seconds interval);
/// The same to first order, as Meta estimates it (arXiv 2410.21680): `(1 - (restart + interval/2)/mttf) / (1 +
/// save/interval)`. Low by many points where restart and interval are not small beside the mean time to failure;
/// never negative.
double first_order_useful_share(const restart_costs& c, seconds interval);

/// Probability that `k` or more of `n` parts are up, which are up `availability` of the time each, independently.
double k_of_n_up(int k, int n, double availability);

/// Failures until all of a set of `neighbours` consecutive groups of `groups` in a circle are dead, by the closed
/// form of SPARe (arXiv 2603.00357): `Gamma(1/r)/r N^(1-1/r)`, which is 3 to 10 % low.
double masked_failures(double groups, double neighbours);

}  // namespace nvlsim
