// Power of jobs that share a cluster: who is capped, and what racks and site see of all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/facility/capping.hpp"
#include "nvlsim/facility/rack_power.hpp"
#include "nvlsim/facility/site_figures.hpp"
#include "nvlsim/operation/cluster_run.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// A job of a cluster as the site sees it.
struct job_power {
  watts mean;                       ///< of a GPU with its share of the rack, at the supplies, while the job works
  std::optional<site_power> waves;  ///< of a step of a job that trains, on a platform of `racks` racks
  std::int64_t racks = 0;
};

/// The job with its facility's own limits switched off, and with this cap.
cluster_job under_cap(const cluster_job& j, const std::optional<watts>& cap);

/// The run follows caps that jobs share: other than those of each rack alone.
bool follows_caps(const facility_spec& f);

/// What each policy gives each job of the cluster, by job. Limits of racks, rows and cooling hold for each job
/// under each policy. [docs/facility.md#capping]
struct cluster_caps {
  std::vector<power_shares> by_policy;  ///< in the order of `capping_policy`
  bool batch_admitted = true;           ///< `admission` has power for batch jobs on all GPUs that are left
  watts batch;                          ///< by a GPU outside the jobs, with its share of the rack
  const power_shares& of(capping_policy p) const { return by_policy[static_cast<std::size_t>(p)]; }
};
/// Nothing without a limit, or if a job has no price under a cap. Why not is a reason in `about` where the run
/// follows the caps, and a note where it does not. A budget that the policy of the run does not keep is a reason.
std::optional<cluster_caps> caps_of(const scenario& s, const operation_case& c, result& about);
/// A table of them for the section of the facility.
value caps_value(const operation_case& c, const cluster_caps& caps);

/// When the jobs of a run drew most: who worked then, and on which trays.
struct cluster_moment {
  double at_s = 0;
  std::vector<std::size_t> members;
  std::vector<std::vector<std::int64_t>> trays;  ///< by member in `members`, by rack: how many
};
cluster_moment busiest_moment(const cluster_setup& c, const cluster_outcome& o,
                              const std::vector<job_power>& jobs);

/// Racks and site at that moment. Steps of different jobs start at times that chance draws from the scenario's
/// seed.
struct shared_power {
  site_power waves;
  power_figures figures;
  watts in_step;  ///< the highest load if all jobs were at their peaks at once
};
shared_power power_of_cluster(const scenario& s, const cluster_moment& when, const std::vector<job_power>& jobs,
                              const cluster_setup& c, watts batch);

}  // namespace nvlsim
