// What the facility of a scenario does to a run, and what it makes of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/analysis/sections.hpp"
#include "nvlsim/facility/rack_power.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// A scenario under the limits of its facility.
struct limited_scenario {
  rack_limit limit;                ///< of a rack
  std::optional<scenario> capped;  ///< with GPUs capped, if the limits do
  std::string impossible;          ///< why no cap keeps the limit; else empty
};
/// The limits apply to all racks of the platform alike. [docs/facility.md#limits]
limited_scenario limited_by_facility(const scenario& s);

/// Power of a training step that ran, at racks and site.
struct step_power {
  site_power waves;
  power_figures figures;
};
/// `uncapped` is the time of the step without the cap, if there is one.
step_power power_of_step(const scenario& s, const training_workload& w, const run_record& ran,
                         std::optional<seconds> uncapped);

/// Adds what the facility's section of a result lists, notes on limits, and the waves.
void add_facility(run_record& out, const scenario& s, const limited_scenario& limits, const step_power* power);

/// Figures of waves for the facility's section of a result: peaks, floors, room in the budget, and stops.
value power_value(const scenario& s, const step_power& power);
/// The waves for a picture.
std::vector<time_curve> curves_of_site(const site_power& w);

/// What a GPU draws in a step that ran, and what one draws at `gpu`, each with its share of the racks at their
/// supplies.
watts drawn_while_training(const result& step);
watts drawn_at(const platform& p, watts gpu);

/// GPUs that draw so much, as a share of the GPU-time of all.
struct drawn_share {
  watts each;
  double share = 0;
};
/// Months of a cluster.
struct cluster_time {
  std::vector<drawn_share> busy_power;  ///< the other GPUs were idle
  seconds wall;
  double goodput = 1;    ///< of the time that is paid for
  double reclaimed = 0;  ///< share of the GPU-time of all that the seller took back: not drawn, not paid for
};
/// The site over them. Adds to the result's sections, and a note on what of the money is assumed.
site_figures site_of_shares(result& out, const scenario& s, const cluster_time& t);

/// By how much a cap of the facility lengthens a step that ran, if one does.
std::optional<double> cap_slowdown(const result& step);
/// A note of a run with evictions on what is assumed of them, if GPUs are spot.
void note_evictions(result& out, const payment& p);

/// The site of a cluster over the months of a job, from a step of it. Adds the step's section, and how often the
/// job stops.
site_figures site_of_months(result& out, const scenario& s, const training_tally& job, const result& step);

}  // namespace nvlsim
