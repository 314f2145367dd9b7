// Settings of a cluster over days to months: failures, recovery and policies. The caller supplies jobs and step
// times.
#pragma once

#include <cstdint>
#include <optional>

#include "nvlsim/operation/checkpoint.hpp"
#include "nvlsim/operation/failures.hpp"
#include "nvlsim/operation/recovery.hpp"
#include "nvlsim/scheduling/cluster_queue.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Failure, save, recovery and maintenance settings of training jobs. Pricing a job fills in what depends on it:
/// the size of its state, and its speed with degraded parts.
struct training_operation {
  std::int64_t racks_per_row = 1;
  failure_model failures;
  constant<double> step_spread = 0;        ///< standard deviation of a replica's step time, relative to its mean
  constant<double> bytes_per_parameter;    ///< of the saved state
  constant<double> weights_per_parameter;  ///< the part of these bytes that every replica holds whole
  save_policy save;
  recovery_policy recovery;
  maintenance_plan maintenance;
  std::optional<std::int64_t> replicas;  ///< units that recover alone; absent: the data-parallel replicas

  bool operator==(const training_operation&) const = default;
};

/// Duration, seeds and policies of a simulated cluster.
struct operation_workload {
  seconds duration;                            ///< simulated wall time
  std::int64_t seeds = 1;                      ///< runs, each with its own failures
  std::optional<training_operation> training;  ///< settings of training jobs
  std::optional<cluster_queue> queue;          ///< queue of jobs whose steps are not simulated
};

}  // namespace nvlsim
