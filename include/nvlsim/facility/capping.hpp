// Jobs that share a site's power: who is capped, or does not run, under each policy. [docs/facility.md#capping]
#pragma once

#include <array>
#include <string>
#include <vector>

#include "nvlsim/facility/facility.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

inline const std::array<std::string, 4> capping_policy_names = {"rack", "uniform", "priority", "admission"};

/// A job under a cap of its GPUs.
struct cap_point {
  watts cap;         ///< of a GPU
  watts drawn;       ///< by a GPU with its share of the rack, at the supplies
  double speed = 1;  ///< over that without a cap
};

/// A job that would run beside others.
struct power_asker {
  double gpus = 0;
  int tier = 0;                   ///< larger ones go first
  std::vector<cap_point> points;  ///< by rising cap, at least one; the last is the job without a cap
};

/// What a job gets.
struct power_share {
  bool runs = true;
  watts cap, drawn;  ///< of a GPU; idle power if the job does not run
  double speed = 1;  ///< 0 if it does not run
};

struct power_shares {
  bool fits = true;  ///< the budget is kept
  std::vector<power_share> jobs;
  watts drawn;       ///< by all jobs
  double speed = 0;  ///< of all jobs, by GPUs
};

/// What the jobs may draw.
struct shared_budget {
  watts all;   ///< by all jobs together, at the racks' supplies
  watts each;  ///< by a GPU, if every rack has an equal share of the site
  watts idle;  ///< by a GPU without work
};

/// Shares the budget by a policy. Between points, draw and speed are linear in the cap. `rack` looks at `each`
/// only. If the lowest caps do not keep the budget, all have them and `fits` is false. Of jobs of one tier,
/// `priority` caps all alike and `admission` takes the first.
power_shares share_power(capping_policy policy, const std::vector<power_asker>& jobs, const shared_budget& b);

}  // namespace nvlsim
