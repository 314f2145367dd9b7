// Closed forms for time lost to failures. They serve as estimates and as checks of the simulation.
#pragma once

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// A job that saves its state at intervals and restarts from it after a failure.
struct restart_costs {
  seconds mttf;     ///< mean wall time between failures of the job; more than 0
  seconds save;     ///< how long a save stops the job
  seconds restart;  ///< from a failure to the next step; failures hit it as often as steps
};

/// Mean time to failure of a job with `units` parts that fail independently, each `per_unit_day` times a day.
seconds job_mttf(double units, double per_unit_day);

/// Young's interval between saves (1974): sqrt(2 save mttf).
seconds young_interval(const restart_costs& c);
/// Daly's first-order interval (2006): Young's minus the time of a save; never negative.
seconds daly_interval(const restart_costs& c);
/// The best interval by Daly's exact form; 0 if a save takes no time.
seconds best_interval(const restart_costs& c);

/// Useful share of the wall time, by Daly's exact form for exponential failures:
/// `interval / (mttf e^(restart/mttf) (e^((interval+save)/mttf) - 1))`. Failures may hit saves, restarts and
/// redone work.
double daly_useful_share(const restart_costs& c, seconds interval);
/// The same to first order, as Meta estimates it (arXiv 2410.21680): `(1 - (restart + interval/2)/mttf) / (1 +
/// save/interval)`. Many points too low unless restart and interval are small compared with the mean time to
/// failure; never negative.
double first_order_useful_share(const restart_costs& c, seconds interval);

/// Probability that at least `k` of `n` independent parts are up, if each is up for `availability` of the time.
double k_of_n_up(int k, int n, double availability);

/// Mean number of failures until `neighbours` consecutive groups in a ring of `groups` are all dead. SPARe's
/// closed form (arXiv 2603.00357), `Gamma(1/r)/r N^(1-1/r)`, is 3 to 10 % low.
double masked_failures(double groups, double neighbours);

}  // namespace nvlsim
