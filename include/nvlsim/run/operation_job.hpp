// A training job that has a cluster for months, priced once and played under several policies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/facility/site_figures.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Whether the scenario is an operation of one training job that has the cluster from the start.
bool is_followed_alone(const scenario& s);

struct priced_operation {
  operation_study study;              ///< without runs
  result step;                        ///< of the run of one step
  std::vector<std::string> reasons;   ///< why it cannot run; empty if it can
  std::vector<time_curve> power;      ///< of the step at its site, as in `run_record`
  std::optional<power_figures> site;  ///< of the step, with a facility
};
/// Prices the job's step with everything healthy and with each degraded part. Requires `is_followed_alone`.
priced_operation price_alone(const scenario& s);
/// The best multiple of the interval between saves for each tier, where they are to be found. Call it again after
/// the interval of a setup changes.
void choose_multiples_of_saves(operation_setup& s);
/// Plays it for the scenario's seeds, and measures. The same as a run, but for the cap of a facility.
operation_metrics measure_alone(const scenario& s, const priced_operation& job);

}  // namespace nvlsim
