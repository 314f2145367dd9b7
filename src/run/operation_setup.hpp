// A job of an operation with what its step costs.
#pragma once

#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/facility/rack_power.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/operation/operation_run.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Requires that the job trains.
const training_workload& training_of(const cluster_job& j);

/// A step of the job on hardware of which some is degraded; null time if it cannot run.
struct step_price {
  seconds time;
  result outcome;
  std::vector<time_curve> power;    ///< as in `run_record`
  std::optional<site_power> waves;  ///< with a facility, if nothing is degraded
};
step_price price_step(const cluster_job& j, const std::vector<degradation>& degraded);

/// What the fabric carries to or from a tray while all trays send or receive.
bandwidth fabric_of_tray(const platform& p);

/// The cluster's racks and trays, and the trays that share a leaf of its fabric.
cluster_shape shape_of(const platform& p, std::int64_t racks_per_row);

/// The failures of the cluster, at the rates that are asked for. Those of machines that the seller of spot GPUs
/// takes back are among them, unless the scenario has a component with a notice of its own.
failure_model failures_of(const scenario& s, const failure_model& given, const cluster_shape& shape);

/// The job alone on the scenario's cluster.
operation_setup setup_of(const scenario& s, const operation_workload& o, const cluster_job& j, seconds step_time);

/// Why such setups cannot be played.
std::vector<std::string> setup_problems(const operation_setup& s, std::int64_t seeds);

}  // namespace nvlsim
