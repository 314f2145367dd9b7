// Simulates the queue of a cluster: which job ran where and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/scheduling/jobs.hpp"
#include "nvlsim/scheduling/policy.hpp"

namespace nvlsim {

/// A cluster and its rules.
struct queue_setting {
  queue_cluster cluster;
  scheduling_policy policy;
  placement_policy placement;
  failure_rates failures;
  std::vector<maintenance_window> maintenance;
  seconds duration;        ///< end of the simulation; 0: when all jobs are done
  std::uint64_t seed = 1;  ///< for failures
};

/// Why a job left its nodes.
enum class attempt_end { finished, time_limit, preempted, node_failed, maintenance, still_running };

/// One run of a job on nodes, from start to end.
struct job_attempt {
  int job = 0;  ///< index into job_list::jobs
  double start_s = 0, end_s = 0;
  attempt_end how = attempt_end::still_running;
  int gpus_each = 0;
  std::vector<int> nodes;  ///< ascending; the final nodes, if it moved

  bool operator==(const job_attempt&) const = default;
};

/// GPU time by use, in GPU-seconds. All members except the last two add up to GPUs x elapsed time.
struct gpu_time {
  double useful = 0;   ///< work whose results were kept
  double redone = 0;   ///< work lost to node failures or preemption
  double surplus = 0;  ///< GPUs of whole nodes that the job did not ask for
  double down = 0;     ///< failed, or in maintenance
  double idle = 0;
  double idle_wanted = 0;    ///< part of `idle`: enough GPUs for the first waiting job were idle
  double idle_in_racks = 0;  ///< part of `idle`: in fully idle racks
};

/// A change of nodes of a running job.
struct node_move {
  int attempt = 0;
  double at_s = 0;
  std::vector<int> lost, gained;  ///< ascending

  bool operator==(const node_move&) const = default;
};

/// Result of a simulated queue.
struct queue_schedule {
  std::vector<job_attempt> attempts;  ///< in order of start
  std::vector<node_move> moves;       ///< in order of time
  double elapsed_s = 0;
  gpu_time time;
  std::int64_t never = 0;  ///< jobs that do not fit even in an empty cluster
  std::int64_t preemptions = 0, failures = 0, requeues = 0;
  std::int64_t passes = 0;  ///< scheduling passes
};

/// A job's time on one node.
struct node_stay {
  int job = 0, node = 0;
  double begin_s = 0, end_s = 0;
};
/// The stays of an attempt with moves `moves`: those ended by moves, then those on its final nodes, ascending.
std::vector<node_stay> stays_of(const job_attempt& a, const std::vector<const node_move*>& moves);
/// The moves of each attempt, by index of the attempt.
std::vector<std::vector<const node_move*>> moves_by_attempt(const queue_schedule& s);

/// Simulates all jobs. Requires jobs in order of submission. Equal inputs give equal schedules.
queue_schedule schedule_jobs(const job_list& jobs, const queue_setting& setting);

}  // namespace nvlsim
