// The jobs of a cluster and the rules for them, as a scenario gives them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/scheduling/generator.hpp"
#include "nvlsim/scheduling/policy.hpp"
#include "nvlsim/scheduling/traces.hpp"

namespace nvlsim {

struct cluster_queue {
  bool beside_jobs = false;  ///< training jobs and services share the cluster; then jobs of its own are optional
  std::string file;          ///< of jobs, as the scenario names it; "": they are generated
  job_file_options file_options;
  std::optional<job_generator> generator;
  std::shared_ptr<const job_list> jobs;  ///< of the file; null if they are generated, with the run's seed
  scheduling_policy policy;
  placement_policy placement;
  failure_rates failures;
  std::vector<maintenance_window> maintenance;
};

}  // namespace nvlsim
