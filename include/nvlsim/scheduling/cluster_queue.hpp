// The jobs of a cluster and their scheduling rules, as given in a scenario.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/scheduling/generator.hpp"
#include "nvlsim/scheduling/policy.hpp"
#include "nvlsim/scheduling/traces.hpp"

namespace nvlsim {

/// A queue: where its jobs come from, and the rules for them.
struct cluster_queue {
  bool beside_jobs = false;  ///< training jobs and services share the cluster; its own jobs are then optional
  std::string file;          ///< job file, as named in the scenario; "": jobs are generated
  job_file_options file_options;
  std::optional<job_generator> generator;
  std::shared_ptr<const job_list> jobs;  ///< jobs of the file; null: generated with the run's seed
  scheduling_policy policy;
  placement_policy placement;
  failure_rates failures;
  std::vector<maintenance_window> maintenance;
};

}  // namespace nvlsim
