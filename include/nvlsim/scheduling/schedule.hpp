// Plays the queue of a cluster: which job ran where and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/scheduling/jobs.hpp"
#include "nvlsim/scheduling/policy.hpp"

namespace nvlsim {

struct queue_setting {
  queue_cluster cluster;
  scheduling_policy policy;
  placement_policy placement;
  failure_rates failures;
  std::vector<maintenance_window> maintenance;
  seconds duration;        ///< when the simulation stops; 0: when all jobs are done
  std::uint64_t seed = 1;  ///< of failures
};

/// Why a job left its nodes.
enum class attempt_end { finished, time_limit, preempted, node_failed, maintenance, still_running, moved };

/// A job's stay on nodes.
struct job_attempt {
  int job = 0;  ///< index into job_list::jobs
  double start_s = 0, end_s = 0;
  attempt_end how = attempt_end::still_running;
  int gpus_each = 0;
  std::vector<int> nodes;  ///< ascending

  bool operator==(const job_attempt&) const = default;
};

/// GPU time by what it went to, in GPU-seconds. The members but the last two add up to GPUs x elapsed time.
struct gpu_time {
  double useful = 0;   ///< work that was kept
  double redone = 0;   ///< work that was lost with a node, or by preemption
  double surplus = 0;  ///< GPUs of whole nodes that the job did not ask for
  double down = 0;     ///< failed, or in maintenance
  double idle = 0;
  double idle_wanted = 0;    ///< of `idle`: while the first job that waited needed no more GPUs than were idle
  double idle_in_racks = 0;  ///< of `idle`: in racks that were wholly idle
};

struct queue_schedule {
  std::vector<job_attempt> attempts;  ///< in order of their starts
  double elapsed_s = 0;
  gpu_time time;
  std::int64_t never = 0;  ///< jobs that fit no empty cluster
  std::int64_t preemptions = 0, failures = 0, requeues = 0;
  std::int64_t passes = 0;  ///< looks at the queue
};

/// Runs all jobs. Jobs must be in order of submission. Equal inputs give equal schedules.
queue_schedule schedule_jobs(const job_list& jobs, const queue_setting& setting);

}  // namespace nvlsim
