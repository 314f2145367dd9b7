// A cluster over days to months: failures, recovery and policies. Jobs and the times of their steps are passed in.
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
  constant<double> step_spread = 0;        ///< standard deviation of a replica's step time over its mean
  constant<double> bytes_per_parameter;    ///< of the saved state
  constant<double> weights_per_parameter;  ///< bytes of them that every replica holds whole
  save_policy save;
  recovery_policy recovery;
  maintenance_plan maintenance;
  std::optional<std::int64_t> replicas;  ///< that recover alone; absent: the data-parallel ones

  bool operator==(const training_operation&) const = default;
};

/// The policies of a cluster, and for how long it runs.
struct operation_workload {
  seconds duration;                            ///< wall time that is simulated
  std::int64_t seeds = 1;                      ///< runs with failures of their own
  std::optional<training_operation> training;  ///< of the jobs
  std::optional<cluster_queue> queue;          ///< of jobs that are not simulated themselves
};

}  // namespace nvlsim
